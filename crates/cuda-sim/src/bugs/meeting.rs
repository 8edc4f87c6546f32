//! How the two sides of a planted race come together: by luck within a window, or made to meet (`force=1`).
//!
//! One side, the *reader*, holds a pointer to something for a while; the other, the *owner*, frees it. The owner then stays
//! where it is until every reader that was at work has gone on, so that both calls are in flight when a reader faults; it
//! waits a bounded time, since a reader that faulted never goes on.

use crate::random;
use crate::settings::Setting;
use crate::wait;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long an owner stays for readers.
const STAY: Duration = Duration::from_secs(2);
/// How long a forced reader waits for an owner; a program may never send one.
const PATIENCE: Duration = Duration::from_millis(250);
/// Reads that do not wait after one that waited in vain.
const PAUSE_AFTER_VAIN: u32 = 32;
/// Threads that are told apart.
const THREADS: usize = 256;

/// A number for the calling thread, from 0.
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) }; }
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        })
        .unwrap_or(0)
}

/// The window of a race.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    length: Duration,
    one_in: u64,
    /// Whether the sides are made to meet.
    pub force: bool,
}

impl Window {
    /// Reads `window_us`, `one_in` and `force`.
    pub fn read(setting: &Setting, window_us: u64, one_in: u64) -> Window {
        Window {
            length: Duration::from_micros(setting.get("window_us", window_us)),
            one_in: setting.get("one_in", one_in),
            force: setting.on("force"),
        }
    }

    /// Now and then lets the window pass; whether it did.
    pub fn pass_sometimes(&self) -> bool {
        let now = random::one_in(self.one_in);
        if now {
            std::thread::sleep(self.length);
        }
        now
    }
}

const NOBODY: u32 = 0;
const COMING: u32 = 1;
const WAITING: u32 = 2;
const HANDED: u32 = 3;

/// Where readers and owners meet.
pub struct Meeting {
    /// One count a thread: odd while it reads.
    readers: [AtomicU64; THREADS],
    /// Threads that were seen at all, as bits of their number modulo 64.
    seen: AtomicU64,
    state: AtomicU32,
    handed: AtomicUsize,
    /// What the waiting reader must not be handed: its own.
    own: AtomicUsize,
    vain: AtomicU32,
}

impl Default for Meeting {
    fn default() -> Self {
        Meeting {
            readers: std::array::from_fn(|_| AtomicU64::new(0)),
            seen: AtomicU64::new(0),
            state: AtomicU32::new(NOBODY),
            handed: AtomicUsize::new(0),
            own: AtomicUsize::new(0),
            vain: AtomicU32::new(0),
        }
    }
}

impl Meeting {
    /// Notes that the calling thread takes part.
    pub fn take_part(&self) {
        self.seen.fetch_or(1 << (thread_number() % 64), Ordering::Relaxed);
    }

    /// Whether more than one thread took part so far.
    pub fn has_company(&self) -> bool {
        self.seen.load(Ordering::Relaxed).count_ones() > 1
    }

    /// Reads: an owner that frees something meanwhile waits for the end of `action`.
    pub fn read<T>(&self, action: impl FnOnce() -> T) -> T {
        let reader = &self.readers[thread_number() % THREADS];
        reader.fetch_add(1, Ordering::SeqCst);
        let result = action();
        reader.fetch_add(1, Ordering::SeqCst);
        result
    }

    /// Waits, as owner, until every reader that is at work now has gone on.
    pub fn stay_for_readers(&self) {
        let me = thread_number() % THREADS;
        let at_work: Vec<(usize, u64)> = (0..THREADS)
            .filter(|&at| at != me)
            .map(|at| (at, self.readers[at].load(Ordering::SeqCst)))
            .filter(|&(_, count)| count % 2 == 1)
            .collect();
        if !at_work.is_empty() {
            let gone_on = || at_work.iter().all(|&(at, count)| self.readers[at].load(Ordering::SeqCst) != count);
            wait::poll(STAY, gone_on);
        }
    }

    /// As a forced reader: waits to be handed what an owner in another thread is about to free; none where none came, where
    /// another reader waits already, or where there is only one thread.
    pub fn wait_to_be_handed(&self, own: usize) -> Option<usize> {
        if !self.has_company() || self.vain.load(Ordering::Relaxed) != 0 {
            let _ = self.vain.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            return None;
        }
        self.state.compare_exchange(NOBODY, COMING, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        self.own.store(own, Ordering::SeqCst);
        self.state.store(WAITING, Ordering::SeqCst);
        wait::poll(PATIENCE, || self.state.load(Ordering::SeqCst) == HANDED);
        if self.state.compare_exchange(WAITING, NOBODY, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.vain.store(PAUSE_AFTER_VAIN, Ordering::Relaxed);
            return None;
        }
        Some(self.handed.load(Ordering::SeqCst))
    }

    /// As an owner: whether a forced reader waits for something that is not `mine`.
    pub fn is_awaited(&self, mine: usize) -> bool {
        self.awaited_by().is_some_and(|own| own != mine)
    }

    /// As an owner: what a forced reader that waits said of itself.
    pub fn awaited_by(&self) -> Option<usize> {
        (self.state.load(Ordering::SeqCst) == WAITING).then(|| self.own.load(Ordering::SeqCst))
    }

    /// As an owner, after freeing: hands over what the waiting reader is to find; false where it waits no more.
    pub fn hand(&self, freed: usize) -> bool {
        self.handed.store(freed, Ordering::SeqCst);
        self.state.compare_exchange(WAITING, HANDED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// As the reader, once it survived what it was handed.
    pub fn done(&self) {
        self.state.store(NOBODY, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_waiting_reader_is_handed_what_another_thread_frees() {
        let meeting = Meeting::default();
        meeting.take_part();
        std::thread::scope(|scope| {
            let owner = scope.spawn(|| {
                meeting.take_part();
                while !meeting.is_awaited(7) {
                    std::thread::yield_now();
                }
                assert!(meeting.hand(42));
            });
            let mut got = None;
            while got.is_none() && !owner.is_finished() {
                got = meeting.wait_to_be_handed(1);
            }
            assert_eq!(got, Some(42));
        });
    }

    #[test]
    fn nobody_waits_alone() {
        let meeting = Meeting::default();
        meeting.take_part();
        assert_eq!(meeting.wait_to_be_handed(1), None);
        assert!(!meeting.is_awaited(2));
    }

    #[test]
    fn an_owner_stays_until_a_reader_has_gone_on() {
        let meeting = Meeting::default();
        let (inside, leave) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                meeting.read(|| {
                    inside.store(true, Ordering::SeqCst);
                    while !leave.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                });
            });
            while !inside.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let owner = scope.spawn(|| meeting.stay_for_readers());
            assert!(!owner.is_finished());
            leave.store(true, Ordering::SeqCst);
            owner.join().unwrap();
        });
    }
}
