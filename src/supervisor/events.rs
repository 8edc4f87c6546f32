//! The one place where a trial waits: for its child, its stderr, the wish to end, and the clock.

use super::interrupt::Subscription;
use super::stderr::Tail;
use super::tree::Tree;
use crate::capture::ExecLog;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// What has become ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    /// The child's stderr.
    pub(super) stderr: bool,
    /// The clock ticked.
    pub(super) tick: bool,
    /// The log of mappings is half full.
    pub(super) log: bool,
}

/// A clock and the wish to end.
#[derive(Debug)]
pub(super) struct Events {
    clock: OwnedFd,
    stop: Subscription,
}

impl Events {
    /// Ticks at this pace.
    pub(super) fn new(stop: Subscription, pace: Duration) -> io::Result<Events> {
        let clock =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let pace = Timespec { tv_sec: pace.as_secs() as i64, tv_nsec: i64::from(pace.subsec_nanos()) };
        let spec = Itimerspec { it_interval: pace, it_value: pace };
        rustix::time::timerfd_settime(&clock, TimerfdTimerFlags::empty(), &spec)?;
        Ok(Events { clock, stop })
    }

    /// Waits until something is ready.
    pub(super) fn wait(&self, tree: &Tree, tail: &Tail, log: Option<&ExecLog>) -> io::Result<Ready> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.clock.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stop.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(tree.poll_fd(), PollFlags::IN),
        ];
        let before_stderr = fds.len();
        fds.extend(tail.poll_fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let before_log = fds.len();
        let logs = log.into_iter().flat_map(ExecLog::poll_fds);
        fds.extend(logs.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |range: std::ops::Range<usize>| fds[range].iter().any(|fd| !fd.revents().is_empty());
        let found =
            Ready { tick: ready(0..1), stderr: ready(before_stderr..before_log), log: ready(before_log..fds.len()) };
        if found.tick {
            // Several ticks that went by are one.
            let _ = rustix::io::read(&self.clock, &mut [0; 8]);
        }
        if ready(1..2) {
            self.stop.clear();
        }
        Ok(found)
    }
}
