//! Runs a compiler in a child with a time limit. What it made is the result; that it crashed or hung is a finding of its
//! own, kept with its input.

use super::child::{Ending, Finished};
use super::tools::{Tool, Tools};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a compiler may take where nothing else is said.
pub const COMPILE_LIMIT: Duration = Duration::from_secs(120);
/// Most characters of a compiler's own words in a message.
const WORDS: usize = 600;

/// A compiler's crash or hang: kind `compiler` among faults.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompilerFinding {
    /// The program.
    pub program: PathBuf,
    /// Its version.
    pub version: String,
    /// Its flags.
    pub flags: Vec<String>,
    /// The signal that ended it; none where it hung.
    pub signal: Option<i32>,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Where its input was kept.
    pub input: PathBuf,
    /// The end of what it said.
    pub said: String,
}

/// Why nothing was compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It crashed or hung.
    #[error("{} {} {}; its input is kept as {}", .0.program.display(), .0.version, ending(.0), .0.input.display())]
    Finding(Box<CompilerFinding>),
    /// It refused its input.
    #[error("{} {version} refused {}: {said}", program.display(), input.display())]
    Refused {
        /// The program.
        program: PathBuf,
        /// Its version.
        version: String,
        /// Its input.
        input: PathBuf,
        /// What it said.
        said: String,
    },
    /// A file could not be written or read, or the child not be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn ending(finding: &CompilerFinding) -> String {
    match finding.signal {
        Some(signal) => Ending::Signaled(signal).to_string(),
        None => Ending::TimedOut.to_string(),
    }
}

/// One compilation.
pub struct Compile<'a> {
    /// The compiler.
    pub tool: &'a Tool,
    /// Its flags, without input and output.
    pub flags: Vec<String>,
    /// Its input.
    pub input: &'a Path,
    /// Its output.
    pub output: &'a Path,
    /// How long it may take.
    pub limit: Duration,
    /// Folder in which the input of a crash or hang is kept.
    pub keep_in: &'a Path,
}

impl Compile<'_> {
    /// Compiles: `TOOL FLAGS INPUT -o OUTPUT`, and reads the output.
    ///
    /// # Errors
    /// A finding where the compiler crashed or hung, its own words where it refused.
    pub fn run(&self, tools: &Tools) -> Result<Vec<u8>, CompileError> {
        let mut words: Vec<std::ffi::OsString> = self.flags.iter().map(Into::into).collect();
        // The compiler runs in the folder of its output: what it leaves lying about goes with that.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        words.extend([absolute(self.input).into(), "-o".into(), absolute(self.output).into()]);
        let io = |path: &Path| {
            let path = path.to_owned();
            |source| CompileError::Io { path, source }
        };
        let folder = self.output.parent();
        let finished =
            tools.child(self.limit).run(&self.tool.path, &words, folder, &[]).map_err(io(&self.tool.path))?;
        self.judge(&finished)?;
        std::fs::read(self.output).map_err(io(self.output))
    }

    fn judge(&self, finished: &Finished) -> Result<(), CompileError> {
        // A compiler that starts others reports their death as 128 + signal.
        let signal = match finished.ending {
            Ending::Exited(0) => return Ok(()),
            Ending::Exited(code @ (132 | 134..=136 | 139)) => Some(code - 128),
            Ending::Exited(_) => {
                return Err(CompileError::Refused {
                    program: self.tool.path.clone(),
                    version: self.tool.version.clone(),
                    input: self.input.to_owned(),
                    said: finished.last_words(WORDS),
                });
            }
            Ending::Signaled(signal) => Some(signal),
            Ending::TimedOut => None,
        };
        Err(CompileError::Finding(Box::new(CompilerFinding {
            program: self.tool.path.clone(),
            version: self.tool.version.clone(),
            flags: self.flags.clone(),
            signal,
            seconds: finished.took.as_secs_f64(),
            input: self.kept_input(),
            said: finished.last_words(WORDS),
        })))
    }

    /// Copies the input to where it outlives this run; the original where that cannot be done.
    fn kept_input(&self) -> PathBuf {
        let name = self.input.file_name().map_or_else(|| "input".into(), |n| n.to_string_lossy().into_owned());
        let kept = self.keep_in.join(format!("compiler-input-{name}"));
        let copied = std::fs::create_dir_all(self.keep_in).and_then(|()| std::fs::copy(self.input, &kept));
        if copied.is_ok() { kept } else { self.input.to_owned() }
    }
}
