//! How a run is ended from outside: Ctrl-C in three steps, `SIGTERM`, or the caller's own wish.
//!
//! A [`StopFlag`] is one word and a way to wake those who wait; a thread of its own turns signals into steps, so that no
//! handler does more than write to a pipe.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How far the wish to end goes. Only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Go on.
    #[default]
    Run,
    /// As if the time were up.
    Finish,
    /// Kill the children, save, end.
    Kill,
}

/// The wish to end, shared by all who must heed it.
#[derive(Debug, Default)]
pub struct StopFlag {
    level: AtomicU8,
    signal: AtomicI32,
    status_wanted: AtomicBool,
    waiting: Mutex<Vec<Weak<OwnedFd>>>,
}

/// Wakes its owner when the level grows.
#[derive(Clone, Debug)]
pub struct Subscription(Arc<OwnedFd>);

impl Subscription {
    /// What to poll for reading.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes the wake-up.
    pub fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl StopFlag {
    /// A flag that says: go on.
    pub fn new() -> Arc<StopFlag> {
        Arc::default()
    }

    /// How far it is.
    pub fn level(&self) -> StopLevel {
        match self.level.load(Ordering::Acquire) {
            0 => StopLevel::Run,
            1 => StopLevel::Finish,
            _ => StopLevel::Kill,
        }
    }

    /// Raises it at least to `level`, and wakes who waits.
    pub fn raise(&self, level: StopLevel) {
        self.level.fetch_max(level as u8, Ordering::AcqRel);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|fd| match fd.upgrade() {
            Some(fd) => {
                // A full counter is a wake-up too.
                let _ = rustix::io::write(&*fd, &1u64.to_ne_bytes());
                true
            }
            None => false,
        });
    }

    /// A descriptor that becomes readable at each [`StopFlag::raise`] from now on.
    pub fn subscribe(&self) -> io::Result<Subscription> {
        let fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|fd| fd.strong_count() > 0);
        waiting.push(Arc::downgrade(&fd));
        Ok(Subscription(fd))
    }

    /// One more Ctrl-C, or a `SIGTERM`. Answers false when there is no step left but to leave at once.
    pub fn signalled(&self, signal: i32) -> bool {
        let next = match (self.level(), signal) {
            (StopLevel::Kill, _) => return false,
            (StopLevel::Run, signal_hook::consts::SIGINT) => StopLevel::Finish,
            _ => StopLevel::Kill,
        };
        if next == StopLevel::Kill {
            self.signal.store(signal, Ordering::Release);
        }
        self.raise(next);
        true
    }

    /// Whether somebody asked how the run goes (`SIGUSR1`) since this was last called.
    pub fn take_status_wanted(&self) -> bool {
        self.status_wanted.swap(false, Ordering::AcqRel)
    }

    /// The exit code of a run that a signal ended at once: 130 for a second Ctrl-C, 143 for `SIGTERM`.
    pub fn exit_code(&self) -> Option<u8> {
        match self.signal.load(Ordering::Acquire) {
            0 => None,
            signal => Some(128 + signal as u8),
        }
    }
}

/// Turns `SIGINT` and `SIGTERM` of this process into steps of `flag`, for the rest of its life.
///
/// The step after the last one leaves at once, without saving; traced children die with their tracer.
pub fn heed_signals(flag: &Arc<StopFlag>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
    // A terminal that goes away is a request to end and save; a file that may not grow is an error of the write, not a death.
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXFSZ])?;
    let flag = Arc::clone(flag);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let ends = match signal {
                SIGUSR1 => {
                    flag.status_wanted.store(true, Ordering::Release);
                    continue;
                }
                SIGXFSZ => continue,
                SIGHUP => SIGTERM,
                other => other,
            };
            if !flag.signalled(ends) {
                signal_hook::low_level::exit(128 + signal);
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::{SIGINT, SIGTERM};

    #[test]
    fn three_interrupts_are_three_steps() {
        let flag = StopFlag::new();
        assert!(flag.signalled(SIGINT));
        assert_eq!((flag.level(), flag.exit_code()), (StopLevel::Finish, None));
        assert!(flag.signalled(SIGINT));
        assert_eq!((flag.level(), flag.exit_code()), (StopLevel::Kill, Some(130)));
        assert!(!flag.signalled(SIGINT));
    }

    #[test]
    fn a_termination_saves_at_once_and_leaves_with_143() {
        let flag = StopFlag::new();
        assert!(flag.signalled(SIGTERM));
        assert_eq!((flag.level(), flag.exit_code()), (StopLevel::Kill, Some(143)));
    }

    #[test]
    fn subscribers_are_woken_and_forgotten() {
        let flag = StopFlag::new();
        let waker = flag.subscribe().unwrap();
        flag.raise(StopLevel::Finish);
        assert_eq!(rustix::io::read(waker.fd(), &mut [0; 8]).unwrap(), 8);
        waker.clear();
        drop(waker);
        flag.raise(StopLevel::Finish);
        assert_eq!(flag.waiting.lock().unwrap().len(), 0);
    }
}
