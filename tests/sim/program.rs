//! Builds and runs the C++ programs of `programs/` against the simulated driver.

use cubin_stress::driver::embedded;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn image(name: &str) -> PathBuf {
    root().join("cubins").join(name)
}

/// The folder with `libcuda.so`, for the linker and the loader.
pub fn library() -> PathBuf {
    embedded::folder().expect("the simulated driver can be put into the cache")
}

/// A program, built once a process.
fn built(name: &str) -> PathBuf {
    static BUILT: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = built.get_or_insert_default();
    if let Some(path) = known.get(name) {
        return path.clone();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (fresh, out) = (folder.join(format!("sim-{name}-{}", std::process::id())), folder.join(format!("sim-{name}")));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&fresh);
    compiler.arg(root().join(format!("tests/sim/programs/{name}.cc")));
    let compiled =
        compiler.arg("-L").arg(library()).args(["-lcuda", "-ldl"]).output().expect("a C++ compiler is needed");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::rename(&fresh, &out).expect("the folder is ours");
    known.insert(name.to_owned(), out.clone());
    out
}

/// A run of a program.
pub struct Run {
    command: Command,
}

impl Run {
    /// The program of that name on an image, with the simulated driver as its libcuda and none of its settings.
    pub fn new(name: &str, image_name: &str) -> Run {
        let mut command = Command::new(built(name));
        command.arg(image(image_name)).env("LD_LIBRARY_PATH", library()).env("CUDA_SIM_DEVICE", "sm_120");
        for setting in ["CUDA_SIM_BUG", "CUDA_SIM_PROFILE", "CUDA_SIM_CHILD"] {
            command.env_remove(setting);
        }
        Run { command }
    }

    /// One more argument.
    pub fn arg(mut self, argument: &str) -> Run {
        self.command.arg(argument);
        self
    }

    /// A variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Run {
        self.command.env(name, value);
        self
    }

    /// Runs it.
    pub fn output(mut self) -> Ended {
        let Output { status, stdout, stderr } = self.command.output().expect("the program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { status, stdout: text(&stdout), stderr: text(&stderr) }
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub status: std::process::ExitStatus,
    pub stdout: String,
    pub stderr: String,
}
