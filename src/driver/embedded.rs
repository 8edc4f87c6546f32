//! The simulated driver inside this program: its file, put where it can be opened, and what it offers.
//!
//! The file lies in a folder of the user's cache that is named after its contents, so that versions of this program do not
//! get in each other's way; it is compared with what this program carries before it is used.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A bug that the simulated driver can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bug {
    /// Its name.
    pub name: &'static str,
    /// What goes wrong.
    pub text: &'static str,
    /// Whose fault it is: the ground truth, for those who measure attribution, never for what attributes.
    pub owner: &'static str,
    /// What kind of fault it is.
    pub kind: &'static str,
    /// Its keys, with what they mean; every bug also takes `seed`.
    pub keys: &'static [(&'static str, &'static str)],
}

/// A profile of the simulated driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub text: &'static str,
    /// Its keys, with what they mean.
    pub keys: &'static [(&'static str, &'static str)],
}

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libcuda_sim.so"));

/// All planted bugs.
pub fn bugs() -> &'static [Bug] {
    BUGS
}

/// All profiles, the default first.
pub fn profiles() -> &'static [Profile] {
    PROFILES
}

/// The path of the simulated driver's file, which is put there first where need be.
///
/// # Errors
/// Where neither the user's cache nor the folder for temporary files takes it.
pub fn path() -> io::Result<PathBuf> {
    Ok(folder()?.join(file_name()))
}

/// The folder that holds `libcuda.so` -> `libcuda.so.1` -> the file: for `-L`, and for `LD_LIBRARY_PATH`.
///
/// # Errors
/// As for [`path`].
pub fn folder() -> io::Result<PathBuf> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no folder to put the simulated driver into");
    for root in roots() {
        let folder = root.join("cubin-stress").join(format!("cuda-sim-{}", digest()));
        match install(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => last = io::Error::new(error.kind(), format!("{}: {error}", folder.display())),
        }
    }
    Err(last)
}

fn file_name() -> String {
    format!("libcuda.so.{FILE_VERSION}")
}

/// Where a folder may be made, best first: `$XDG_CACHE_HOME`, `~/.cache`, and a folder of this user's own among the
/// temporary files.
fn roots() -> Vec<PathBuf> {
    let absolute = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = rustix::process::geteuid().as_raw();
    [
        absolute("XDG_CACHE_HOME"),
        absolute("HOME").map(|home| home.join(".cache")),
        Some(env::temp_dir().join(format!("cubin-stress-{user}"))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first half of the contents' SHA-256, as hex.
fn digest() -> String {
    Sha256::digest(LIBRARY).iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Makes the folder whole; a whole one is left alone.
fn install(folder: &Path) -> io::Result<()> {
    let file = folder.join(file_name());
    if fs::read(&file).is_ok_and(|bytes| bytes == LIBRARY) {
        return link_all(folder);
    }
    fs::create_dir_all(folder)?;
    let mut fresh = tempfile::Builder::new().prefix(".libcuda-").tempfile_in(folder)?;
    fresh.write_all(LIBRARY)?;
    set_mode(fresh.as_file())?;
    // One step: whoever opens the file meanwhile sees the old one or the new one.
    fresh.persist(&file).map_err(|error| error.error)?;
    if fs::read(&file)? != LIBRARY {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is not what was written"));
    }
    link_all(folder)
}

fn set_mode(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

fn link_all(folder: &Path) -> io::Result<()> {
    link(&folder.join("libcuda.so.1"), &file_name())?;
    link(&folder.join("libcuda.so"), "libcuda.so.1")
}

/// Makes `path` a link to `target`; one that is right is left alone.
fn link(path: &Path, target: &str) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|found| found == Path::new(target)) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let aside =
        tempfile::Builder::new().prefix(".link-").make_in(folder, |place| std::os::unix::fs::symlink(target, place))?;
    aside.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_replaced_and_the_links_lead_to_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sim");
        install(&folder).unwrap();
        let file = folder.join(file_name());
        fs::write(&file, b"not a library").unwrap();
        fs::remove_file(folder.join("libcuda.so")).unwrap();
        install(&folder).unwrap();
        assert_eq!(fs::read(folder.join("libcuda.so")).unwrap(), LIBRARY);
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["libcuda.so", "libcuda.so.1", file_name().as_str()], "nothing is left behind");
    }

    #[test]
    fn a_file_in_the_way_is_an_error_with_its_path() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("sim"), b"").unwrap();
        assert!(install(&root.path().join("sim")).is_err());
    }

    #[test]
    fn bugs_and_profiles_are_listed_once_each() {
        let names: std::collections::BTreeSet<_> = bugs().iter().map(|bug| bug.name).collect();
        assert_eq!(names.len(), bugs().len());
        assert_eq!(profiles()[0].name, "none");
        assert!(bugs().iter().all(|bug| crate::vocabulary::Owner::ALL.iter().any(|owner| owner.word() == bug.owner)));
    }
}
