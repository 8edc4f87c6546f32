//! The hidden command `leash`: ties this process to its parent's life, limits what it may leave behind, and becomes the
//! program that it was told to run.

use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Largest file that a compiler may write, bytes.
const LARGEST_FILE: u64 = 1 << 30;

/// Becomes `words[0]`, with the rest as its arguments, if `parent` is still the parent.
pub fn main(parent: i32, words: &[OsString]) -> ExitCode {
    let only = |value| Rlimit { current: Some(value), maximum: Some(value) };
    let tied = set_parent_process_death_signal(Some(Signal::KILL))
        .and_then(|()| setrlimit(Resource::Core, only(0)))
        .and_then(|()| setrlimit(Resource::Fsize, only(LARGEST_FILE)));
    if let Err(error) = tied {
        eprintln!("leash: {error}");
        return ExitCode::from(127);
    }
    // The parent may have gone before the leash was on.
    if getppid() != Pid::from_raw(parent) {
        return ExitCode::from(127);
    }
    let Some((program, arguments)) = words.split_first() else { return ExitCode::from(127) };
    let error = Command::new(program).args(arguments).exec();
    eprintln!("{}: {error}", program.to_string_lossy());
    ExitCode::from(127)
}
