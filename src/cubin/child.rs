//! Runs another program (a compiler, or ourselves on an image's host code) to its end or to a time limit, with its input
//! and output in memory files: nothing that it prints can block it or us.
//!
//! It is started through the hidden command `leash`, so that it dies with us and leaves no core file.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Most bytes of output that are kept, each of stdout and stderr.
const KEPT: u64 = 4 << 20;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was killed for taking too long.
    TimedOut,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "exited with code {code}"),
            Ending::Signaled(signal) => write!(f, "was ended by signal {signal}{}", signal_name(*signal)),
            Ending::TimedOut => f.write_str("did not end in time and was killed"),
        }
    }
}

fn signal_name(number: i32) -> String {
    match number {
        4 => " (SIGILL)".into(),
        6 => " (SIGABRT)".into(),
        7 => " (SIGBUS)".into(),
        8 => " (SIGFPE)".into(),
        9 => " (SIGKILL)".into(),
        11 => " (SIGSEGV)".into(),
        _ => String::new(),
    }
}

/// What a child left behind.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// The first 4 MiB of its stdout.
    pub stdout: Vec<u8>,
    /// The first 4 MiB of its stderr.
    pub stderr: Vec<u8>,
    /// How long it took.
    pub took: Duration,
}

impl Finished {
    /// The last lines of stderr, or of stdout where that is empty, as one line of at most `limit` characters.
    pub fn last_words(&self, limit: usize) -> String {
        let said = if self.stderr.iter().all(u8::is_ascii_whitespace) { &self.stdout } else { &self.stderr };
        let text = String::from_utf8_lossy(said);
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = words.join(" ");
        let skipped = line.chars().count().saturating_sub(limit);
        if skipped == 0 { line } else { format!("…{}", line.chars().skip(skipped).collect::<String>()) }
    }
}

/// A program to run.
pub struct Child {
    /// The `stress` program itself, which holds the leash.
    pub own_program: PathBuf,
    /// How long it may take.
    pub limit: Duration,
}

impl Child {
    /// Runs `program` with `arguments` in `folder`, with `stdin` as its input.
    ///
    /// # Errors
    /// When it cannot be started or watched. How it ended, even by a signal, is no error.
    pub fn run(
        &self,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        folder: Option<&Path>,
        stdin: &[u8],
    ) -> io::Result<Finished> {
        let (mut stdout, mut stderr) = (memory_file()?, memory_file()?);
        let mut command = Command::new(&self.own_program);
        command.arg("leash").arg(std::process::id().to_string()).arg("--").arg(program).args(arguments);
        command.stdin(filled(stdin)?).stdout(Stdio::from(stdout.try_clone()?)).stderr(Stdio::from(stderr.try_clone()?));
        command.process_group(0);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let start = Instant::now();
        let mut child = command.spawn()?;
        let ended = wait(&mut child, start + self.limit);
        // Whatever it started is in its group, and goes with it.
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = child.wait()?;
        let ending = if ended? { ending(status) } else { Ending::TimedOut };
        Ok(Finished { ending, stdout: kept(&mut stdout)?, stderr: kept(&mut stderr)?, took: start.elapsed() })
    }
}

/// Whether the child ended before the deadline.
fn wait(child: &mut std::process::Child, deadline: Instant) -> io::Result<bool> {
    let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::NotFound)?;
    let watch = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signaled(signal),
        (None, None) => Ending::Exited(-1),
    }
}

fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create("stress-child", MemfdFlags::CLOEXEC)?))
}

fn filled(bytes: &[u8]) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = memory_file()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(Stdio::from(file))
}

fn kept(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(KEPT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
