//! A descriptor that becomes readable when a signal arrives, whichever thread the kernel hands it to.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PipeFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Readable after each `SIGCHLD`: a child ended, or a traced thread stopped.
///
/// A pipe that a signal handler writes to, not a signalfd: a signalfd works only where the signal is blocked in every
/// thread, those of libraries included.
#[derive(Debug)]
pub(super) struct Wake {
    pipe: OwnedFd,
    handler: signal_hook::SigId,
}

impl Wake {
    /// Begins to listen. Also undoes an ignored `SIGCHLD` that the supervisor inherited, under which no status is kept.
    pub(super) fn on_child() -> io::Result<Wake> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let handler = signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, write)?;
        Ok(Wake { pipe: read, handler })
    }

    /// What to poll for reading.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Takes what has arrived, without waiting.
    pub(super) fn clear(&self) {
        let mut buffer = [0; 512];
        while matches!(rustix::io::read(&self.pipe, &mut buffer), Ok(n) if n == buffer.len()) {}
    }

    /// Waits for the signal, at most this long.
    pub(super) fn wait(&self, limit: Duration) {
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        // An interrupted or failed wait is only a shorter one.
        let _ = poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&limit));
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.handler);
    }
}
