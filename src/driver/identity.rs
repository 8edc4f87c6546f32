//! What a driver library is, read from its file: nothing is loaded, so this is safe in the supervisor.

use crate::plan::DriverKind;
use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{Architecture, Object, ObjectSymbol};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The symbol that the simulated driver exports, whatever its file is called.
const STAMP: &[u8] = b"cuda_sim_stamp";

/// What a driver library is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The path under which it is opened.
    pub path: PathBuf,
    /// NVIDIA's or the laboratory's.
    pub kind: DriverKind,
    /// GNU build id, lower-case hex.
    pub build_id: Option<String>,
    /// The driver's version, such as `595.84`: from the file's name, else (real drivers only) from the kernel module.
    pub version: Option<String>,
}

/// Why a file is not a driver library that this process could open.
#[derive(Debug, thiserror::Error)]
pub enum NotADriver {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is not a 64-bit ELF file.
    #[error("{}: not a 64-bit ELF file ({error})", path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        error: object::Error,
    },
    /// It is for another machine.
    #[error("{}: a library for {found:?}, this machine is {}", path.display(), std::env::consts::ARCH)]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// The machine that it is for.
        found: Architecture,
    },
    /// It exports nothing that a driver exports.
    #[error("{}: a shared library, but it exports no cuInit", path.display())]
    NoDriver {
        /// The file.
        path: PathBuf,
    },
}

impl Identity {
    /// Reads the identity of the library at `path`.
    ///
    /// # Errors
    /// Where the file is not a library of this machine that exports `cuInit`.
    pub fn read(path: &Path) -> Result<Identity, NotADriver> {
        let unreadable = |error| NotADriver::Unreadable { path: path.into(), error };
        // A pipe is refused below, and not waited for here.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::other("not a regular file")));
        }
        // Only headers, notes and the table of exports are read, not the whole library.
        let cache = ReadCache::new(file);
        let elf: ElfFile64<'_, object::Endianness, _> =
            ElfFile64::parse(&cache).map_err(|error| NotADriver::NotElf { path: path.into(), error })?;
        if elf.architecture() != host() {
            return Err(NotADriver::OtherMachine { path: path.into(), found: elf.architecture() });
        }
        let exports =
            |name: &[u8]| elf.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name_bytes() == Ok(name));
        let kind = if exports(STAMP) { DriverKind::Simulated } else { DriverKind::Real };
        if kind == DriverKind::Real && !exports(b"cuInit") {
            return Err(NotADriver::NoDriver { path: path.into() });
        }
        let build_id = elf.build_id().ok().flatten().map(hex);
        Ok(Identity { path: path.into(), kind, build_id, version: version(path, kind) })
    }
}

/// The machine that this program runs on.
const fn host() -> Architecture {
    if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `libcuda.so.595.84` behind whatever links lead to it is version 595.84.
fn version(path: &Path, kind: DriverKind) -> Option<String> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let from_name = real
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix("libcuda.so."))
        .filter(|rest| rest.contains('.') && rest.starts_with(|first: char| first.is_ascii_digit()))
        .map(String::from);
    let from_kernel = || match kind {
        DriverKind::Real => fs::read_to_string("/sys/module/nvidia/version").ok().map(|text| text.trim().to_string()),
        DriverKind::Simulated => None,
    };
    from_name.or_else(from_kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_driver_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "not an ELF file").unwrap();
        assert!(matches!(Identity::read(&text), Err(NotADriver::NotElf { .. })));
        assert!(matches!(Identity::read(folder.path()), Err(NotADriver::Unreadable { .. })));
        let this = std::env::current_exe().unwrap();
        let error = Identity::read(&this).unwrap_err();
        assert!(matches!(error, NotADriver::NoDriver { .. }), "{error}");
        assert!(error.to_string().contains(this.to_str().unwrap()));
    }

    #[test]
    fn the_version_comes_from_the_file_behind_the_links() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("libcuda.so.595.84.02");
        fs::write(&real, "").unwrap();
        let link = folder.path().join("libcuda.so.1");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(version(&link, DriverKind::Simulated).as_deref(), Some("595.84.02"));
        let plain = folder.path().join("libcuda.so.2");
        fs::write(&plain, "").unwrap();
        assert_eq!(version(&plain, DriverKind::Simulated), None);
    }
}
