//! Starts a child: `posix_spawn` with file actions, in a process group of its own, behind a gate.
//!
//! Not `fork`: that copies the page tables of a supervisor that may hold much memory. The child blocks on one byte of the
//! gate before it does anything, so that it can be watched from its first instruction that matters; end of file there
//! tells it that the supervisor is gone.
#![allow(unsafe_code)] // posix_spawn has no safe form.

use crate::journal::{GATE_OPEN, GATE_UNTRACED};
use libc::{c_char, c_int, pid_t};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A program to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<std::ffi::OsString>,
    /// Its whole environment.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// Descriptors to hand over, each with the number that it has in the child.
    pub descriptors: Vec<(BorrowedFd<'a>, i32)>,
}

/// The write end of a gate. One byte opens it; dropped unopened, the child sees end of file and leaves.
#[derive(Debug)]
pub struct Gate(OwnedFd);

impl Gate {
    /// A gate, and the end of it that the child reads.
    pub fn new() -> io::Result<(Gate, OwnedFd)> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok((Gate(write), read))
    }

    /// Lets the child go. The gate stays with the caller: while it lives, the child sees no end of file.
    pub fn open(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &[GATE_OPEN])?;
        Ok(())
    }

    /// Lets it go, and asks it to write its own last words, since it could not be traced.
    pub fn open_untraced(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &[GATE_UNTRACED])?;
        Ok(())
    }
}

/// Starts it and returns its process id. The caller must wait for it.
///
/// The child has default signal dispositions, no signal blocked, and a process group of its own, so that a Ctrl-C at the
/// terminal reaches the supervisor alone.
pub fn spawn(launch: &Launch<'_>) -> io::Result<pid_t> {
    let program = c_string(launch.program.as_os_str().as_bytes())?;
    let mut args = vec![program.clone()];
    for arg in &launch.args {
        args.push(c_string(arg.as_bytes())?);
    }
    let mut env = Vec::with_capacity(launch.env.len());
    for (name, value) in &launch.env {
        env.push(c_string([name.as_bytes(), b"=", value.as_bytes()].concat())?);
    }
    // Copies above every target number: a file action must not overwrite a descriptor that a later one still needs.
    let lowest = launch.descriptors.iter().map(|&(_, target)| target + 1).max().unwrap_or(0);
    let mut copies = Vec::with_capacity(launch.descriptors.len());
    for (fd, target) in &launch.descriptors {
        copies.push((rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), lowest)?, *target));
    }
    let mut actions = FileActions::new()?;
    for (copy, target) in &copies {
        actions.dup(copy.as_raw_fd(), *target)?;
    }
    let attributes = Attributes::new()?;
    let (argv, envp) = (pointers(&args), pointers(&env));
    let mut pid = 0;
    // SAFETY: every pointer is to a live, initialised value; both vectors of pointers end in null.
    check(unsafe {
        libc::posix_spawn(&mut pid, program.as_ptr(), &actions.0, &attributes.0, argv.as_ptr(), envp.as_ptr())
    })?;
    Ok(pid)
}

fn c_string(text: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|s| s.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

fn check(code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: init writes the whole value when it answers 0, and only then it is taken as initialised.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Ok(FileActions(actions.assume_init()))
        }
    }

    fn dup(&mut self, from: c_int, to: c_int) -> io::Result<()> {
        // SAFETY: the value was initialised by `new`.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, from, to) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    /// Own process group, default dispositions for all signals, none blocked.
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        let mut none = MaybeUninit::uninit();
        let flags = libc::POSIX_SPAWN_SETPGROUP | libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        // SAFETY: init writes the attributes, fillset and emptyset the sets, before anything reads them.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut this = Attributes(attributes.assume_init());
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(none.as_mut_ptr());
            check(libc::posix_spawnattr_setpgroup(&mut this.0, 0))?;
            check(libc::posix_spawnattr_setsigdefault(&mut this.0, all.as_ptr()))?;
            check(libc::posix_spawnattr_setsigmask(&mut this.0, none.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&mut this.0, flags as libc::c_short))?;
            Ok(this)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}
