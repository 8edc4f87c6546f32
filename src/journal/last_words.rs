//! The last words of a dying child: signal and registers, written by a handler in the child where ptrace is refused.
//!
//! The handler's side ([`DeathBed`]) is safe to use in a signal handler: it stores to memory that is mapped already, and does
//! nothing else. The reader's side treats every word as hostile, as all readers of the journal do.
#![allow(unsafe_code)] // looks at the mapped words through atomics

use super::create::Journal;
use super::layout::{CONTROL_AT, Control, LAST_WORDS_AT};
use super::notes::word;
use super::writer::JournalWriter;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Registers in the order of `capture`: the sixteen general ones in DWARF's order, the program counter, the flags.
pub const REGISTERS: usize = 18;

/// The byte that opens a child's gate.
pub const GATE_OPEN: u8 = b'g';
/// The byte that opens it where the child is not traced although it should be: it is to write its own last words.
pub const GATE_UNTRACED: u8 = b'h';

/// How far it is.
mod state {
    pub const CLAIMED: u32 = 1;
    pub const WHOLE: u32 = 2;
    pub const RELEASED: u32 = 3;
}

/// The words as they lie in the control page.
#[repr(C, align(64))]
pub(super) struct Words {
    /// See [`state`].
    state: AtomicU32,
    signal: AtomicU32,
    code: AtomicU32,
    tid: AtomicU32,
    address: AtomicU64,
    sender: AtomicU64,
    registers: [AtomicU64; REGISTERS],
}

/// What a handler in the child wrote down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWords {
    /// The thread that the signal hit.
    pub tid: i32,
    /// The signal.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`, for signals that carry one.
    pub address: u64,
    /// `si_pid`, for signals that were sent.
    pub sender: i32,
    /// The thread's registers, see [`REGISTERS`].
    pub registers: [u64; REGISTERS],
}

/// Where a dying thread writes: from a signal handler.
#[derive(Clone, Copy)]
pub struct DeathBed {
    words: &'static Words,
    control: &'static Control,
}

impl JournalWriter {
    /// Where a dying thread writes its last words.
    pub fn death_bed(&self) -> DeathBed {
        // SAFETY: LAST_WORDS_AT is aligned and inside the control page, which is mapped, never unmapped, and atomics.
        let words = unsafe { &*self.base.add(LAST_WORDS_AT).cast::<Words>() };
        DeathBed { words, control: self.control() }
    }
}

impl DeathBed {
    /// Writes the words down, if no other thread has, and stops all recording. False: another thread came first.
    pub fn write(&self, last: &LastWords) -> bool {
        // What the other threads did until now is what the supervisor is to see.
        self.control.freeze.store(1, Release);
        let words = self.words;
        if words.state.compare_exchange(0, state::CLAIMED, Acquire, Relaxed).is_err() {
            return false;
        }
        words.signal.store(last.signal.cast_unsigned(), Relaxed);
        words.code.store(last.code.cast_unsigned(), Relaxed);
        words.tid.store(last.tid.cast_unsigned(), Relaxed);
        words.address.store(last.address, Relaxed);
        words.sender.store(u64::from(last.sender.cast_unsigned()), Relaxed);
        for (word, value) in words.registers.iter().zip(last.registers) {
            word.store(value, Relaxed);
        }
        words.state.store(state::WHOLE, Release);
        true
    }

    /// Whether the supervisor has seen enough.
    pub fn released(&self) -> bool {
        self.words.state.load(Acquire) == state::RELEASED
    }
}

impl Journal {
    /// The child's last words, once they are whole.
    pub fn last_words(&self) -> Option<LastWords> {
        let bytes = self.copy(LAST_WORDS_AT, size_of::<Words>()).ok()?;
        let half = |at: usize| ((word(&bytes, at & !7) >> (8 * (at & 7))) as u32).cast_signed();
        (half(offset_of!(Words, state)) == state::WHOLE.cast_signed()).then(|| LastWords {
            tid: half(offset_of!(Words, tid)),
            signal: half(offset_of!(Words, signal)),
            code: half(offset_of!(Words, code)),
            address: word(&bytes, offset_of!(Words, address)),
            sender: half(offset_of!(Words, sender)),
            registers: std::array::from_fn(|index| word(&bytes, offset_of!(Words, registers) + 8 * index)),
        })
    }

    /// Lets the dying child die of its signal.
    ///
    /// # Errors
    /// What `pwrite` answered.
    pub fn release(&self) -> io::Result<()> {
        self.set(LAST_WORDS_AT - CONTROL_AT + offset_of!(Words, state), state::RELEASED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::JournalSpec;

    #[test]
    fn the_first_thread_that_dies_is_heard_and_recording_stops() {
        let journal = Journal::create(&JournalSpec::default()).unwrap();
        let writer = JournalWriter::attach(journal.fd()).unwrap();
        let bed = writer.death_bed();
        assert_eq!(journal.last_words(), None);
        let registers = std::array::from_fn(|index| index as u64 + 100);
        let last = LastWords { tid: 7, signal: 11, code: 1, address: u64::MAX - 5, sender: 0, registers };
        assert!(bed.write(&last));
        assert!(!bed.write(&LastWords { tid: 8, ..last }));
        assert_eq!(journal.last_words(), Some(last));
        let mut thread = writer.thread(0);
        let open = thread.enter(crate::vocabulary::Call::Load, 1);
        thread.leave(open, 0);
        assert!(journal.snapshot(9).threads[0].last.is_empty());
        assert!(!bed.released());
        journal.release().unwrap();
        assert!(bed.released());
        assert_eq!(journal.last_words(), None, "they are read once");
    }

    #[test]
    fn the_words_lie_in_the_control_page_behind_the_control() {
        const { assert!(LAST_WORDS_AT >= CONTROL_AT + size_of::<Control>()) };
        const { assert!(LAST_WORDS_AT + size_of::<Words>() <= super::super::layout::NOTES_AT) };
        const { assert!(LAST_WORDS_AT.is_multiple_of(align_of::<Words>())) };
    }
}
