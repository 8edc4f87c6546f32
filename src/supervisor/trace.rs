//! The kernel's tracing interface, one thin function each: `ptrace`, `waitpid`, and what their words mean.
//!
//! Raw `libc` on purpose: wrappers that put a signal into an enum lose the stop of a real-time signal (`pthread_cancel`
//! sends one) and the traced thread with it. ptrace requests belong to the thread that seized: all of them are made by
//! the one thread that started the child. Nothing here decides anything.
#![allow(unsafe_code)] // ptrace and waitpid have no safe form.

use libc::{c_int, c_uint, c_void, pid_t};
use std::io;
use std::mem::MaybeUninit;

/// Follow threads, forks of every kind and exec, report exits before they happen, and kill the tracees when the
/// supervisor dies.
pub(super) const FOLLOW_ALL: c_int = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// The same without a stop at each thread's exit.
pub(super) const FOLLOW_LIGHT: c_int = FOLLOW_ALL & !libc::PTRACE_O_TRACEEXIT;

const EVENT_STOP: c_int = libc::PTRACE_EVENT_STOP;

/// What a wait status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// A signal is about to be delivered to it.
    Signal(i32),
    /// It stopped with its whole process, by this stop signal.
    GroupStop(i32),
    /// It was interrupted by us, has just been made, or was continued.
    Plain,
    /// It made a process or a thread; the event message names it.
    Made,
    /// Its process has a new program.
    Exec,
    /// It is about to exit; the event message is its wait status.
    Exiting,
}

/// Reads a wait status.
pub(super) fn decode(status: c_int) -> Change {
    if libc::WIFEXITED(status) {
        return Change::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Change::Killed(libc::WTERMSIG(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 => Change::Signal(signal),
        EVENT_STOP if [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal) => {
            Change::GroupStop(signal)
        }
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => Change::Made,
        libc::PTRACE_EVENT_EXEC => Change::Exec,
        libc::PTRACE_EVENT_EXIT => Change::Exiting,
        _ => Change::Plain,
    }
}

/// The next change of a tracee or child **of this thread**, if there is one. `Err(ECHILD)`: there are none left.
///
/// `__WNOTHREAD` keeps this thread from taking the events of another thread's tracees, which it could not continue.
pub(super) fn next_change() -> io::Result<Option<(pid_t, c_int)>> {
    wait(-1, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG)
}

/// Reaps this one process if it is a zombie of this supervisor, whichever thread's child it is.
pub(super) fn reap(pid: pid_t) -> io::Result<Option<c_int>> {
    Ok(wait(pid, libc::__WALL | libc::WNOHANG)?.map(|(_, status)| status))
}

fn wait(pid: pid_t, flags: c_int) -> io::Result<Option<(pid_t, c_int)>> {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(pid, &mut status, flags) } {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            found => return Ok(Some((found, status))),
        }
    }
}

/// How a child of ours ended, without reaping it: its wait status, or none while it lives.
pub(super) fn peek_end(pid: pid_t) -> io::Result<Option<c_int>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` outlives the call, and zeroed bytes are a valid siginfo_t where the call writes nothing.
    let info = unsafe {
        if libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), flags) != 0 {
            return Err(io::Error::last_os_error());
        }
        info.assume_init()
    };
    // SAFETY: waitid fills the fields of SIGCHLD, or leaves zeros.
    let (who, value) = unsafe { (info.si_pid(), info.si_status()) };
    if who == 0 {
        return Ok(None);
    }
    Ok(Some(if info.si_code == libc::CLD_EXITED { (value & 0xff) << 8 } else { value & 0x7f }))
}

fn request(what: c_uint, tid: pid_t, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: every caller passes numbers, or the address of a buffer that outlives the call and that `what` fits.
    match unsafe { libc::ptrace(what, tid, address as *mut c_void, data as *mut c_void) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Starts tracing a process without stopping it.
pub(super) fn seize(pid: pid_t, options: c_int) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, pid, 0, options as usize)
}

/// Stops a running thread; the stop arrives as a change.
pub(super) fn interrupt(tid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets a stopped thread go on, delivering `signal` unless it is 0.
pub(super) fn resume(tid: pid_t, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Leaves a thread in its group stop, so that a stopped child stays stopped until somebody continues it.
pub(super) fn listen(tid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// The message of the event that a thread is stopped at: the new thread's id, or the status that it exits with.
pub(super) fn event_message(tid: pid_t) -> io::Result<i64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message as i64)
}

/// The signal that a thread is stopped at: its code, address and sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SignalInfo {
    /// `si_code`.
    pub(super) code: i32,
    /// `si_addr`, for a fault whose address the kernel knows.
    pub(super) address: Option<u64>,
    /// Who sent it, for a signal that somebody sent.
    pub(super) sender: Option<i32>,
}

/// Reads the signal that a thread is stopped at.
pub(super) fn signal_info(tid: pid_t) -> io::Result<SignalInfo> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as usize)?;
    // SAFETY: the request filled it in; zeroed bytes are a valid siginfo_t anyway.
    let info = unsafe { info.assume_init() };
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];
    let known = info.si_code > 0 && info.si_code != libc::SI_KERNEL && faults.contains(&info.si_signo);
    // SAFETY: si_addr is what the kernel fills for these signals with a positive code, si_pid for those that were sent.
    let (address, sender) =
        unsafe { (known.then(|| info.si_addr() as u64), (info.si_code <= 0).then(|| info.si_pid())) };
    Ok(SignalInfo { code: info.si_code, address, sender })
}

/// Sends a signal to a process. A process that is gone is no error.
pub(super) fn kill(pid: pid_t, signal: i32) {
    // SAFETY: kill takes two numbers. `pid` is positive at every caller, so it names one process.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait status as the kernel builds it for a ptrace stop.
    fn stop(event: i32, signal: i32) -> c_int {
        (event << 16) | (signal << 8) | 0x7f
    }

    #[test]
    fn statuses_read_as_the_kernel_means_them() {
        assert_eq!(decode(3 << 8), Change::Exited(3));
        assert_eq!(decode(11), Change::Killed(11));
        assert_eq!(decode(11 | 0x80), Change::Killed(11));
        assert_eq!(decode(stop(0, libc::SIGSEGV)), Change::Signal(libc::SIGSEGV));
        assert_eq!(decode(stop(128, libc::SIGSTOP)), Change::GroupStop(libc::SIGSTOP));
        assert_eq!(decode(stop(128, libc::SIGTRAP)), Change::Plain);
        assert_eq!(decode(stop(libc::PTRACE_EVENT_VFORK, libc::SIGTRAP)), Change::Made);
        assert_eq!(decode(stop(libc::PTRACE_EVENT_EXIT, libc::SIGTRAP)), Change::Exiting);
    }

    #[test]
    fn a_real_time_signal_is_kept_as_its_number() {
        assert_eq!(decode(stop(0, 33)), Change::Signal(33));
        assert_eq!(decode(stop(0, 64)), Change::Signal(64));
    }
}
