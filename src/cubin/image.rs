//! An image that a run can load: its bytes, and what they say about kernels, architecture and compiler.

use super::file::{FileError, read_file};
use crate::exit::Exit;
use cubin_image::{Compiler, CompilerKind, Cubin, ImageError, ImageKind, Kernel};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kernel that is launched where an image has several and none was named.
pub const USUAL_KERNEL: &str = "repro_kernel";

/// Why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageProblem {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bytes are not an image.
    #[error("{}: {source}", path.display())]
    Bytes {
        /// The file.
        path: PathBuf,
        /// What was expected, and where.
        source: ImageError,
    },
    /// A form that is not loaded as it is.
    #[error("{}: at offset 0x0: expected {expected}, found {}", path.display(), kind.describe())]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it should have been.
        expected: &'static str,
        /// Its form.
        kind: ImageKind,
    },
    /// The kernel that was asked for is not in it.
    #[error("kernel `{wanted}` is not in {}; it has: {}", path.display(), present.join(", "))]
    NoKernel {
        /// The name that was asked for.
        wanted: String,
        /// The file.
        path: PathBuf,
        /// The kernels in it.
        present: Vec<String>,
    },
    /// There are several kernels and none was named.
    #[error("{} has several kernels: choose one with --kernel ({})", path.display(), present.join(", "))]
    ManyKernels {
        /// The file.
        path: PathBuf,
        /// The kernels in it.
        present: Vec<String>,
    },
    /// Its host code is for another machine: exit code 3.
    #[error(
        "{}: at offset {offset:#x}: expected a host object for {}, found one for {machine}",
        path.display(),
        std::env::consts::ARCH.replace('_', "-")
    )]
    ForeignHost {
        /// The file.
        path: PathBuf,
        /// File offset of the host object.
        offset: u64,
        /// The machine that its host code is for.
        machine: String,
    },
}

impl ImageProblem {
    /// The exit code that fits.
    pub fn exit(&self) -> Exit {
        match self {
            ImageProblem::ForeignHost { .. } => Exit::CannotRun,
            _ => Exit::BadInput,
        }
    }
}

/// What an image's bytes say, in whatever form it is.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its form.
    pub kind: ImageKind,
    /// The architecture that it was compiled for or asks for: 120 for sm_120; none where the form leaves it open.
    pub arch: Option<u32>,
    /// The Tile IR compiler made it, or will (in the driver).
    pub tile: bool,
    /// It carries host code.
    pub host_object: bool,
    /// Who made it.
    pub compiler: Compiler,
    /// Its kernels; none where the form does not tell them.
    pub kernels: Option<Vec<Kernel>>,
}

impl Facts {
    /// Facts of an image that a compiler in the driver is to finish.
    pub fn for_driver(kind: ImageKind) -> Facts {
        let compiler = Compiler { kind: CompilerKind::Unknown, version: None, back_end: None };
        Facts { kind, arch: None, tile: false, host_object: false, compiler, kernels: None }
    }
}

/// An image, read.
#[derive(Clone, Debug)]
pub struct Image {
    /// The file that was named.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// SHA-256 of these, hex.
    pub sha256: String,
    /// What they say.
    pub facts: Facts,
    /// The kernel to launch in place of the plan's, where this image has it under another name.
    pub launch: Option<String>,
    /// File offset of a byte that is to differ at every load (variant `unique`).
    pub unique_byte: Option<u64>,
}

impl Image {
    /// Reads an image of any form that a driver loads: cubin, fat binary, PTX text, Tile IR bytecode.
    ///
    /// # Errors
    /// When the file cannot be read or is not an image that could run on this host.
    pub fn read(path: &Path) -> Result<Image, ImageProblem> {
        Image::from_bytes(path, read_file(path)?)
    }

    /// The same for bytes that are there already; `path` says where they came from.
    ///
    /// # Errors
    /// When they are not an image that could run on this host.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Image, ImageProblem> {
        let facts = super::sources::facts(path, &bytes)?;
        let sha256 = hex(&Sha256::digest(&bytes));
        Ok(Image { path: path.to_owned(), bytes: bytes.into(), sha256, facts, launch: None, unique_byte: None })
    }

    /// Several images as one, for children whose threads take different ones. Its facts are those of the first; the worker
    /// refuses images that do not take the same launch. None where there are no images.
    pub fn bundle(path: &Path, images: &[Image]) -> Option<Image> {
        let first = images.first()?;
        let named: Vec<(String, &[u8])> = images.iter().map(|i| (i.path.display().to_string(), &*i.bytes)).collect();
        let bytes = super::bundle::pack(&named);
        let sha256 = hex(&Sha256::digest(&bytes));
        Some(Image { path: path.to_owned(), bytes: bytes.into(), sha256, ..first.clone() })
    }

    /// The kernel to launch: the one named, the only one, or the usual one. None where the image's form does not tell its
    /// kernels: the driver will know.
    ///
    /// # Errors
    /// When it is not there, or there are several to choose from.
    pub fn kernel(&self, wanted: Option<&str>) -> Result<Option<&Kernel>, ImageProblem> {
        let Some(kernels) = &self.facts.kernels else { return Ok(None) };
        let named = |name: &str| kernels.iter().find(|k| k.name == name);
        let present = || kernels.iter().map(|k| k.name.clone()).collect();
        if let Some(wanted) = wanted {
            return named(wanted).map(Some).ok_or_else(|| ImageProblem::NoKernel {
                wanted: wanted.to_owned(),
                path: self.path.clone(),
                present: present(),
            });
        }
        match &kernels[..] {
            [only] => Ok(Some(only)),
            _ => named(USUAL_KERNEL)
                .map(Some)
                .ok_or_else(|| ImageProblem::ManyKernels { path: self.path.clone(), present: present() }),
        }
    }

    /// Its architecture, such as `sm_120`.
    pub fn arch_name(&self) -> Option<String> {
        self.facts.arch.map(|arch| format!("sm_{arch}"))
    }

    /// Folder and file name, enough to tell images of one run apart: `tile/add.sm_120`.
    pub fn short_name(&self) -> String {
        let stem = self.path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        match self.path.parent().and_then(Path::file_name) {
            Some(folder) => format!("{}/{stem}", folder.to_string_lossy()),
            None => stem,
        }
    }
}

/// Reads a cubin for a look at it: one whose host object is for another machine is taken too.
///
/// # Errors
/// When the file cannot be read or is not a cubin.
pub fn read_cubin(path: &Path) -> Result<(Vec<u8>, Cubin), ImageProblem> {
    let bytes = read_file(path)?;
    let kind = ImageKind::detect(&bytes);
    if !matches!(kind, ImageKind::Cubin | ImageKind::Empty) {
        return Err(ImageProblem::Kind { path: path.to_owned(), expected: "a cubin", kind });
    }
    let cubin = Cubin::parse(&bytes).map_err(|source| ImageProblem::Bytes { path: path.to_owned(), source })?;
    Ok((bytes, cubin))
}

/// Lower-case hex digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
