//! Waiting: a short spin, then the kernel's futex.
#![allow(unsafe_code)] // futex is a bare system call

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Turns of a spin before a wait gives its core away: a few microseconds.
const SPIN: u32 = 600;

/// Sleeps while `word` holds `seen`, at most `limit`; may wake early.
pub fn futex_wait(word: &AtomicU32, seen: u32, limit: Option<Duration>) {
    let time = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word outlives the call and the time is null or points to a timespec on this stack.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, seen, time) };
}

/// Wakes up to `count` sleepers on `word`.
pub fn futex_wake(word: &AtomicU32, count: i32) {
    // SAFETY: the word is valid; waking touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count) };
}

/// Spins until `done`; false where it gave up after a few microseconds.
pub fn spin(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..SPIN {
        if done() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// Waits until `done`, at most `limit`, asking again after 20 us at first and 2 ms at last; false where the limit came first.
pub fn poll(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    while !done() {
        if start.elapsed() >= limit {
            return false;
        }
        let word = AtomicU32::new(0);
        futex_wait(&word, 0, Some(pause));
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    true
}

/// Passes `time`, exactly rather than cheaply: sleeps most of it and spins the rest.
pub fn pass(time: Duration) {
    let start = Instant::now();
    if time > Duration::from_micros(200) {
        std::thread::sleep(time - Duration::from_micros(100));
    }
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A count that others wait for.
#[derive(Default)]
pub struct Signal {
    word: AtomicU32,
    sleepers: AtomicU32,
}

impl Signal {
    /// Tells everyone who waits that something changed.
    pub fn ring(&self) {
        self.word.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            futex_wake(&self.word, i32::MAX);
        }
    }

    /// Waits until `done`, which some thread makes true before it rings.
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) {
        if spin(&mut done) {
            return;
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        loop {
            let seen = self.word.load(Ordering::SeqCst);
            if done() {
                break;
            }
            futex_wait(&self.word, seen, None);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_ring_wakes_a_sleeper() {
        let shared = Arc::new((Signal::default(), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let sleeper = std::thread::spawn(move || other.0.wait_until(|| other.1.load(Ordering::SeqCst)));
        while shared.0.sleepers.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        shared.1.store(true, Ordering::SeqCst);
        shared.0.ring();
        sleeper.join().unwrap();
    }

    #[test]
    fn poll_gives_up_at_its_limit() {
        assert!(!poll(Duration::from_millis(5), || false));
        assert!(poll(Duration::from_secs(5), || true));
    }
}
