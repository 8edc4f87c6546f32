//! An image that a run can load.

use super::file::{FileError, read_file};
use crate::exit::Exit;
use cubin_image::{Cubin, ImageError, ImageKind, Kernel};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kernel that is launched where an image has several and none was named.
const USUAL_KERNEL: &str = "repro_kernel";

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
    #[error("{}: at offset 0x0: expected a cubin, found {}", path.display(), kind.describe())]
    Kind {
        /// The file.
        path: PathBuf,
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
    pub cubin: Cubin,
}

impl Image {
    /// Reads an image.
    ///
    /// # Errors
    /// When the file cannot be read or is not a cubin that could run on this host.
    pub fn read(path: &Path) -> Result<Image, ImageProblem> {
        let bytes = read_file(path)?;
        let kind = ImageKind::detect(&bytes);
        if kind != ImageKind::Cubin {
            return Err(ImageProblem::Kind { path: path.to_owned(), kind });
        }
        let cubin = Cubin::parse(&bytes).map_err(|source| ImageProblem::Bytes { path: path.to_owned(), source })?;
        if let Some(host) = cubin.host_object().filter(|host| !host.machine.is_native()) {
            let (offset, machine) = (host.offset, host.machine.word());
            return Err(ImageProblem::ForeignHost { path: path.to_owned(), offset, machine });
        }
        let sha256 = hex(&Sha256::digest(&bytes));
        Ok(Image { path: path.to_owned(), bytes: bytes.into(), sha256, cubin })
    }

    /// The kernel to launch: the one named, the only one, or the usual one.
    ///
    /// # Errors
    /// When it is not there, or there are several to choose from.
    pub fn kernel(&self, wanted: Option<&str>) -> Result<&Kernel, ImageProblem> {
        let kernels = &self.cubin.kernels;
        let present = || kernels.iter().map(|k| k.name.clone()).collect();
        if let Some(wanted) = wanted {
            return self.cubin.kernel(wanted).ok_or_else(|| ImageProblem::NoKernel {
                wanted: wanted.to_owned(),
                path: self.path.clone(),
                present: present(),
            });
        }
        match &kernels[..] {
            [only] => Ok(only),
            _ => self
                .cubin
                .kernel(USUAL_KERNEL)
                .ok_or_else(|| ImageProblem::ManyKernels { path: self.path.clone(), present: present() }),
        }
    }

    /// Its architecture, such as `sm_120`.
    pub fn arch_name(&self) -> Option<String> {
        Some(format!("sm_{}", self.cubin.arch))
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
        return Err(ImageProblem::Kind { path: path.to_owned(), kind });
    }
    let cubin = Cubin::parse(&bytes).map_err(|source| ImageProblem::Bytes { path: path.to_owned(), source })?;
    Ok((bytes, cubin))
}

/// Lower-case hex digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
