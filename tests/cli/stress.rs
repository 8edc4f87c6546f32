//! Runs `stress` in a folder of its own.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's folder.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A committed image, such as `tile/add.sm_120.cubin`.
pub fn image(name: &str) -> PathBuf {
    repository().join("cubins").join(name)
}

/// A folder to run in, and what is needed to run there.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `stress` in that folder, with nothing of the caller's own settings.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
        command.current_dir(self.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STRESS_") || name.to_string_lossy().starts_with("CUDA_") {
                command.env_remove(name);
            }
        }
        command
    }

    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran(self.command().args(args).output().expect("stress starts"))
    }

    /// The summary of the newest run.
    pub fn latest(&self) -> Value {
        let path = self.path().join("results/latest/summary.json");
        serde_json::from_slice(&std::fs::read(path).expect("a summary")).expect("JSON")
    }
}

/// What a run of `stress` gave.
pub struct Ran(pub Output);

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Checks the exit code; shows everything where it differs.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr());
        self
    }
}
