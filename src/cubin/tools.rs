//! Finds the compilers that a machine has: in a Python environment, in `PATH`, in the usual CUDA folders.
//!
//! Nothing here is needed to run: a machine without any of them can do all that asks for no compiler.

use super::child::{Child, Ending};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a compiler may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// A compiler on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The program.
    pub path: PathBuf,
    /// Its exact version, such as `13.4.92`.
    pub version: String,
}

impl Tool {
    /// Release of the version: `13.4` of `13.4.92`.
    pub fn release(&self) -> &str {
        let end = self.version.match_indices('.').nth(1).map_or(self.version.len(), |(at, _)| at);
        &self.version[..end]
    }
}

/// Where compilers are looked for.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The `stress` program, which runs them on a leash.
    pub own_program: PathBuf,
    /// Folders with programs, in order.
    pub folders: Vec<PathBuf>,
    /// A Python interpreter, where one was found or named.
    pub python: Option<PathBuf>,
}

impl Tools {
    /// Looks in the environment of `python` (else of the first `python3` in `PATH`), then in `PATH`, `CUDA_HOME`,
    /// `CUDA_PATH` and `/usr/local/cuda*`.
    pub fn new(own_program: PathBuf, python: Option<&Path>) -> Tools {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let searched: Vec<PathBuf> = std::env::split_paths(&path).filter(|p| p.is_absolute()).collect();
        let usual = || searched.iter().map(|folder| folder.join("python3")).find(|p| p.is_file());
        let python = python.map(Path::to_owned).or_else(usual);
        let mut folders: Vec<PathBuf> = python.iter().flat_map(|p| wheel_folders(p)).collect();
        folders.extend(searched);
        let named = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os);
        folders.extend(named.map(|home| PathBuf::from(home).join("bin")));
        folders.extend(children(Path::new("/usr/local"), "cuda").into_iter().map(|cuda| cuda.join("bin")));
        Tools { own_program, folders, python }
    }

    /// Every program of that name that says its version, each file once, in the order of the folders.
    pub fn all(&self, name: &str) -> Vec<Tool> {
        let mut seen = BTreeSet::new();
        let files = self.folders.iter().map(|folder| folder.join(name)).filter(|p| p.is_file());
        files
            .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
            .filter_map(|path| self.version(&path).map(|version| Tool { path, version }))
            .collect()
    }

    /// The program of that name in that version, else the first one.
    pub fn best(&self, name: &str, version: Option<&str>) -> Option<Tool> {
        let all = self.all(name);
        all.iter().find(|t| Some(t.version.as_str()) == version).or(all.first()).cloned()
    }

    /// A child with that time limit.
    pub fn child(&self, limit: Duration) -> Child {
        Child { own_program: self.own_program.clone(), limit }
    }

    fn version(&self, program: &Path) -> Option<String> {
        let said = self.child(VERSION_LIMIT).run(program, &["--version"], None, &[]).ok()?;
        if said.ending != Ending::Exited(0) {
            return None;
        }
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        // "Cuda compilation tools, release 13.4, V13.4.92"
        let word = text
            .split([' ', ',', '\n'])
            .rfind(|w| w.starts_with('V') && w[1..].starts_with(|c: char| c.is_ascii_digit()))?;
        Some(word[1..].trim().to_owned())
    }
}

/// `lib/python3.*/site-packages/nvidia/*/bin` of the environment that an interpreter belongs to.
fn wheel_folders(python: &Path) -> Vec<PathBuf> {
    // The link is not followed: a virtual environment's interpreter is a link to the system's.
    let Some(environment) = python.parent().and_then(Path::parent) else { return Vec::new() };
    let libraries = children(&environment.join("lib"), "python3");
    let vendors = libraries.iter().flat_map(|lib| children(&lib.join("site-packages/nvidia"), ""));
    vendors.map(|vendor| vendor.join("bin")).filter(|bin| bin.is_dir()).collect()
}

/// Folders in `parent` whose names start with `prefix`, newest name first.
fn children(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.reverse();
    found
}
