//! Chooses the driver library (without loading it) and opens it (in a worker only).

use super::entries::{self, Entries};
use super::identity::{Identity, NotADriver};
use super::{embedded, search};
use crate::plan::{DriverChoice, DriverKind};
use std::convert::Infallible;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

impl FromStr for DriverChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => DriverChoice::Auto,
            "real" => DriverChoice::Real,
            "sim" => DriverChoice::Sim,
            path => DriverChoice::Path(path.into()),
        })
    }
}

impl fmt::Display for DriverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverChoice::Auto => f.write_str("auto"),
            DriverChoice::Real => f.write_str("real"),
            DriverChoice::Sim => f.write_str("sim"),
            DriverChoice::Path(path) => path.display().fmt(f),
        }
    }
}

/// The library that a run uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The library.
    pub path: PathBuf,
    /// NVIDIA's or the laboratory's.
    pub kind: DriverKind,
    /// All that its file says.
    pub identity: Identity,
    /// The simulated driver was taken because this machine has no other; to be said on stderr.
    pub fallback: bool,
}

/// Why no driver can be used here: exit code 3.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// There is no driver library.
    #[error(
        "no libcuda.so.1 on this machine{}\n  \
        install NVIDIA's driver, name its library with `--driver PATH`, or use the simulated driver with `--driver sim`",
        device.as_ref().map(|device| format!(", although it has an NVIDIA device ({device})")).unwrap_or_default()
    )]
    NoLibrary {
        /// What shows that there is an NVIDIA device all the same.
        device: Option<String>,
    },
    /// The machine's only `libcuda.so.1` is the simulated one.
    #[error(
        "{}: this is the simulated driver, and `--driver real` was asked for\n  take it out of the loader's path, or use `--driver sim`",
        .0.display()
    )]
    OnlySimulated(PathBuf),
    /// The file that was found or named is not a driver.
    #[error("{0}\n  name another library with `--driver PATH`, or use the simulated driver with `--driver sim`")]
    NotADriver(#[from] NotADriver),
    /// The simulated driver cannot be put where it can be opened.
    #[error(
        "the simulated driver cannot be written to a file: {0}\n  set TMPDIR to a folder that is not mounted noexec"
    )]
    NoSimulated(io::Error),
}

/// Chooses the library by `choice`. Reads files only: nothing is loaded into this process.
///
/// # Errors
/// Where there is none that could be opened, with what to do about it.
pub fn choose(choice: &DriverChoice) -> Result<Chosen, Unusable> {
    match choice {
        DriverChoice::Sim => simulated(false),
        DriverChoice::Path(path) => {
            let file = if path.is_dir() { path.join("libcuda.so.1") } else { path.clone() };
            // Without a slash the loader would search for it instead of opening it.
            let file = std::path::absolute(&file).unwrap_or(file);
            Ok(chosen(Identity::read(&file)?, false))
        }
        DriverChoice::Real => installed(&search::candidates(), true)?
            .ok_or_else(|| Unusable::NoLibrary { device: search::nvidia_device() }),
        DriverChoice::Auto => match (installed(&search::candidates(), false)?, search::nvidia_device()) {
            (Some(found), _) => Ok(found),
            (None, None) => simulated(true),
            (None, device) => Err(Unusable::NoLibrary { device }),
        },
    }
}

/// The first of `candidates` that is a library of this machine; none where there are no candidates. As the loader does,
/// libraries of other machines are passed over.
fn installed(candidates: &[PathBuf], only_real: bool) -> Result<Option<Chosen>, Unusable> {
    let mut refused = None;
    for path in candidates {
        match Identity::read(path) {
            Ok(identity) if only_real && identity.kind == DriverKind::Simulated => {
                refused.get_or_insert(Unusable::OnlySimulated(path.clone()));
            }
            Ok(identity) => return Ok(Some(chosen(identity, false))),
            Err(NotADriver::OtherMachine { .. }) => {}
            Err(error) => {
                refused.get_or_insert(Unusable::NotADriver(error));
            }
        }
    }
    refused.map_or(Ok(None), Err)
}

fn simulated(fallback: bool) -> Result<Chosen, Unusable> {
    let path = embedded::path().map_err(Unusable::NoSimulated)?;
    Ok(chosen(Identity::read(&path)?, fallback))
}

fn chosen(identity: Identity, fallback: bool) -> Chosen {
    Chosen { path: identity.path.clone(), kind: identity.kind, identity, fallback }
}

/// Why a library that was chosen could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The loader refused it.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// The library.
        path: PathBuf,
        /// What the loader says.
        reason: String,
    },
    /// It lacks an entry point that every run needs.
    #[error("{}: the driver (CUDA {}) has no entry point {symbol}", path.display(), version_text(*cuda))]
    Missing {
        /// The library.
        path: PathBuf,
        /// The first entry point that is not there.
        symbol: &'static str,
        /// What `cuDriverGetVersion` says, where it is there.
        cuda: Option<i32>,
    },
    /// This process has opened a driver before.
    #[error("a driver is open already in this process")]
    SecondTime,
}

/// `13020` is CUDA 13.2.
pub fn version_text(cuda: Option<i32>) -> String {
    cuda.map_or_else(|| "of unknown version".into(), |cuda| format!("{}.{}", cuda / 1000, cuda % 1000 / 10))
}

/// Opens the driver library at `path` and fills the table that `cust` and the hot loop use. Never in the supervisor.
///
/// # Errors
/// Where the loader refuses it, or a required entry point is missing.
pub fn open(path: &Path) -> Result<&'static Entries, OpenError> {
    let refused = |reason: String| OpenError::Refused { path: path.into(), reason };
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| refused(error.to_string()))?;
    // SAFETY: a NUL-terminated name and valid flags. The library's initialisers run in this process, which is what a worker
    // is for. LOCAL keeps its symbols from mixing with ours.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(refused(loader_error()));
    }
    // SAFETY: a handle that dlopen gave and that is never closed, and a NUL-terminated name.
    let lookup = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: the library stays open for the process's life; that its exports of these names have the driver API's
    // signatures is what makes it a driver library.
    let resolved = unsafe { Entries::resolve(&lookup) };
    let entries = resolved.map_err(|symbol| OpenError::Missing {
        path: path.into(),
        symbol,
        cuda: cuda_version(lookup(c"cuDriverGetVersion")),
    })?;
    entries::install(entries).ok_or(OpenError::SecondTime)
}

/// Asks a library that lacks something for its version.
fn cuda_version(function: *mut c_void) -> Option<i32> {
    if function.is_null() {
        return None;
    }
    // SAFETY: not null, and the driver API gives the export of this name this signature; it needs no initialised driver.
    let function: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { std::mem::transmute(function) };
    let mut version = 0;
    // SAFETY: the pointer is valid for one int.
    let code = unsafe { function(&mut version) };
    (code == 0).then_some(version)
}

fn loader_error() -> String {
    // SAFETY: dlerror has no preconditions; its text is valid until this thread's next call into the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gives no reason".into();
    }
    // SAFETY: not null, and NUL-terminated by dlerror's contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_choices_are_read_and_written() {
        for text in ["auto", "real", "sim", "/opt/x/libcuda.so.1"] {
            assert_eq!(text.parse::<DriverChoice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_library_that_is_no_driver_gives_the_hint() {
        let this = std::env::current_exe().unwrap();
        let error = choose(&DriverChoice::Path(this)).unwrap_err();
        assert!(error.to_string().contains("--driver sim"), "{error}");
    }

    #[test]
    fn a_broken_installed_library_is_not_silently_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let broken = folder.path().join("libcuda.so.1");
        std::fs::write(&broken, "broken").unwrap();
        assert!(matches!(installed(&[broken], false), Err(Unusable::NotADriver(_))));
        assert!(matches!(installed(&[], false), Ok(None)));
    }

    #[test]
    fn a_file_that_the_loader_refuses_keeps_the_loaders_reason() {
        let error = open(Path::new("/nowhere/libcuda.so.1")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/libcuda.so.1"), "{error}");
        assert!(matches!(error, OpenError::Refused { .. }));
    }
}
