//! Where images come from: one file a source. Which one is guessed from the name and the first bytes; `--source` overrides.

mod built_in;
mod cu;
mod cubin;
mod cutile;
mod directory;
mod fatbin;
mod ptx;
mod tile_bytecode;

pub use built_in::names as built_in_names;

use super::compile::CompileError;
use super::file::read_file;
use super::image::{Facts, Image, ImageProblem};
use super::tools::Tools;
use crate::exit::Exit;
use cubin_image::{ImageError, ImageKind};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A cubin.
    Cubin,
    /// A fat binary: the driver takes the member that suits the device.
    Fatbin,
    /// PTX text: the driver compiles it.
    Ptx,
    /// Tile IR bytecode: the driver compiles it.
    TileBytecode,
    /// CUDA C++ or CUDA Tile C++: nvcc compiles it.
    Cu,
    /// A cuTile program: cuda-tile in a Python environment compiles it.
    Cutile,
    /// A folder, or a pattern of file names.
    Directory,
    /// An image that this program brings along: `tile:add`, `ptx:add`.
    BuiltIn,
}

/// Why a source gave no image.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The image cannot be used.
    #[error(transparent)]
    Image(#[from] ImageProblem),
    /// A compiler refused, crashed or hung.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Something that this source needs is missing here.
    #[error("{0}")]
    Missing(String),
    /// The source itself is not what it should be.
    #[error("{0}")]
    Bad(String),
}

impl SourceError {
    /// The exit code that fits: a compiler that crashed or hung is a fault that was found.
    pub fn exit(&self) -> Exit {
        match self {
            SourceError::Image(problem) => problem.exit(),
            SourceError::Compile(CompileError::Finding(_)) => Exit::FaultFound,
            SourceError::Compile(CompileError::Refused { .. }) | SourceError::Bad(_) => Exit::BadInput,
            SourceError::Compile(CompileError::Io { .. }) | SourceError::Missing(_) => Exit::CannotRun,
        }
    }
}

/// What sources may need.
#[derive(Clone, Copy)]
pub struct Workshop<'a> {
    /// The compilers at hand.
    pub tools: &'a Tools,
    /// Asks for the device's architecture, such as 120: only where a source is compiled or chosen for it.
    pub arch: &'a dyn Fn() -> Result<u32, String>,
    /// Where to say what a user should know and is no error.
    pub say: &'a dyn Fn(&str),
    /// A folder for intermediate files.
    pub scratch: &'a Path,
    /// Where the input of a compiler that crashed is kept.
    pub keep_in: &'a Path,
}

/// What a word on the command line names.
pub fn guess(word: &Path) -> SourceKind {
    let text = word.to_string_lossy();
    if !word.exists() {
        if built_in::is_name(&text) {
            return SourceKind::BuiltIn;
        }
        if directory::is_pattern(&text) {
            return SourceKind::Directory;
        }
    }
    if word.is_dir() {
        return SourceKind::Directory;
    }
    match word.extension().and_then(|e| e.to_str()) {
        Some("cu") => SourceKind::Cu,
        Some("py") => SourceKind::Cutile,
        // Whatever else it is, its first bytes tell.
        _ => SourceKind::Cubin,
    }
}

/// The images that a word names: one, or for a folder or a pattern all of them, in order.
///
/// # Errors
/// Where it names none that could run here.
pub fn load(word: &Path, kind: Option<SourceKind>, workshop: &Workshop) -> Result<Vec<Image>, SourceError> {
    let kind = kind.unwrap_or_else(|| guess(word));
    match kind {
        SourceKind::Directory => directory::load(word, workshop),
        SourceKind::BuiltIn => built_in::load(word, workshop).map(|image| vec![image]),
        SourceKind::Cu => cu::compile(word, workshop).map(|image| vec![image]),
        SourceKind::Cutile => cutile::compile(word, workshop).map(|image| vec![image]),
        SourceKind::Cubin if guess(word) == SourceKind::Cubin => Ok(vec![Image::read(word)?]),
        of_one_form => Ok(vec![read_as(word, of_one_form)?]),
    }
}

/// Reads a file that was said to be of one form.
fn read_as(path: &Path, kind: SourceKind) -> Result<Image, ImageProblem> {
    let bytes = read_file(path)?;
    let found = ImageKind::detect(&bytes);
    let (wanted, expected) = match kind {
        SourceKind::Fatbin => (ImageKind::Fatbin, "a fat binary"),
        SourceKind::Ptx => (ImageKind::Ptx, "PTX text"),
        SourceKind::TileBytecode => (ImageKind::TileBytecode, "Tile IR bytecode"),
        _ => (ImageKind::Cubin, "a cubin"),
    };
    if found != wanted {
        return Err(ImageProblem::Kind { path: path.to_owned(), expected, kind: found });
    }
    Image::from_bytes(path, bytes)
}

/// What an image's bytes say.
///
/// # Errors
/// When they are of no form that a driver loads, or are broken.
pub fn facts(path: &Path, bytes: &[u8]) -> Result<Facts, ImageProblem> {
    let broken = |source: ImageError| ImageProblem::Bytes { path: path.to_owned(), source };
    match ImageKind::detect(bytes) {
        ImageKind::Cubin => cubin::facts(path, bytes),
        ImageKind::Fatbin => fatbin::facts(bytes).map_err(broken),
        ImageKind::Ptx => ptx::facts(bytes).map_err(broken),
        ImageKind::TileBytecode => tile_bytecode::facts(bytes).map_err(broken),
        kind => {
            let expected = "a cubin, a fat binary, PTX text or Tile IR bytecode";
            Err(ImageProblem::Kind { path: path.to_owned(), expected, kind })
        }
    }
}
