//! Programs that fail in one chosen way each, for tests and demonstrations.
//!
//! Their sources are in `programs/`, one file a way to fail; the crate's build compiles them. Each first reads one byte from
//! descriptor 6, the supervisor's gate, where there is one.

use std::path::{Path, PathBuf};

/// Folder of the compiled programs.
pub fn folder() -> &'static Path {
    Path::new(env!("OUT_DIR"))
}

/// The compiled program of this name: the name of its source without the extension. Libraries end in `.so.1`.
pub fn program(name: &str) -> PathBuf {
    folder().join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_there_and_one_dies_as_it_says() {
        let status = std::process::Command::new(program("signals")).arg("abrt").status().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6));
    }
}
