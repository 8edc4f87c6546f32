//! Who waits for whose lock, as far as the lock says it: pthread mutexes name their owner, Rust's own do not.

use super::memory::Memory;
use crate::evidence::{LockWait, Thread};

/// Offset of the owner's thread id in glibc's `pthread_mutex_t`.
const OWNER: u64 = 8;
/// `FUTEX_WAIT`, private to the process or not. A join waits with another operation.
const WAITS: [u64; 2] = [0x80, 0];

/// Threads that wait for a mutex whose owner is another living thread of the process.
pub(super) fn waits(threads: &[Thread], memory: &Memory) -> Vec<LockWait> {
    let wait = |thread: &Thread| {
        let (number, [lock, operation, ..]) = thread.syscall?;
        if number != libc::SYS_futex || !WAITS.contains(&operation) {
            return None;
        }
        let owner = i32::try_from(memory.value(lock.checked_add(OWNER)?, 4)?).ok()?;
        let lives = owner != thread.tid && threads.iter().any(|other| other.tid == owner);
        lives.then_some(LockWait { waiter: thread.tid, lock, owner })
    };
    threads.iter().filter_map(wait).collect()
}
