//! The format of the shared memory: what lies where, for the writer (worker) and the reader (supervisor) alike.
//!
//! ```text
//! 0        Header     what this is, the clock; read by the worker once
//! 4096     Control    freeze and stop words (written by the supervisor), began and finished (written by the worker)
//! 6144     LastWords  signal and registers of a dying child that is not traced
//! 8192     Notes      a counter, then NOTE_SLOTS slots of 512 bytes
//! ...      Threads    one block a thread: state word, counters, latency buckets, ring; the last block is the main thread's
//! ```
//! Each thread writes to its own block only, and what the supervisor writes lies on pages of its own, so that no two
//! processors write one cache line. Everything is little-endian and 8-byte aligned. The layout is private to one binary (the
//! worker is the supervisor's own executable), so [`VERSION`] guards against a mix-up only.

use super::latency::{BUCKETS, HotCall};
use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// First eight bytes of a journal.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"stressJ\x01");
/// Changes with every change of this file.
pub(super) const VERSION: u32 = 2;
/// Slots for notes.
pub(super) const NOTE_SLOTS: usize = 256;
/// Bytes of words in a note.
pub(super) const NOTE_TEXT: usize = 448;
/// Calls that have counters: any number of [`crate::vocabulary::Call`].
pub(super) const CALL_NUMBERS: usize = 128;
/// Entries of the shortest ring: 100 ms of calls of the fastest loop fit, which is how long threads have been seen to run on
/// after a fault.
pub(super) const MIN_RING: usize = 4096;
/// Longest ring.
pub(super) const MAX_RING: usize = 1 << 20;
/// Most threads.
pub(super) const MAX_THREADS: usize = 1024;
/// A page: the grain of the regions.
const PAGE: usize = 4096;
/// Bits of a packed call: the number above, the module serial below.
const SERIAL_BITS: u32 = 56;
/// [`Header::clock`]: times are ticks of the TSC.
pub(super) const CLOCK_TSC: u32 = 1;
/// [`Header::clock`]: times are ns of `CLOCK_MONOTONIC`.
pub(super) const CLOCK_MONOTONIC: u32 = 2;

/// What this memory is. Written by the supervisor before the child lives.
#[repr(C)]
pub(super) struct Header {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    /// Blocks, the main thread's included.
    pub blocks: AtomicU32,
    pub ring: AtomicU32,
    /// [`CLOCK_TSC`] or [`CLOCK_MONOTONIC`].
    pub clock: AtomicU32,
    /// Time of creation, ticks.
    pub tick0: AtomicU64,
    /// The same moment, ns of `CLOCK_MONOTONIC`.
    pub mono0: AtomicU64,
    /// ns a tick, times 2^32.
    pub ns_per_tick_32: AtomicU64,
}

/// The words through which both sides speak while the child runs.
#[repr(C, align(64))]
pub(super) struct Control {
    /// Not 0: writers stop recording. Written by the supervisor.
    pub freeze: AtomicU32,
    /// Not 0: the child is asked to finish. Written by the supervisor.
    pub stop: AtomicU32,
    pad: [u64; 7],
    /// When the loop began, ticks; 0: not yet.
    pub began: AtomicU64,
    /// When the order was finished, ticks; 0: not yet.
    pub finished: AtomicU64,
}

/// One note. `valid` is written last.
#[repr(C, align(64))]
pub(super) struct NoteSlot {
    /// The slot's number plus one, once the slot is whole.
    pub valid: AtomicU64,
    pub at: AtomicU64,
    pub module: AtomicU64,
    pub live: AtomicU64,
    /// Index of the thread plus one; 0: the main thread.
    pub thread: AtomicU32,
    pub code: AtomicU32,
    pub kind: AtomicU32,
    pub call: AtomicU32,
    pub length: AtomicU64,
    pad: u64,
    pub text: [AtomicU64; NOTE_TEXT / 8],
}

/// What a thread is doing: one cache line that it alone writes.
#[repr(C, align(64))]
pub(super) struct State {
    /// [`packed`] call that is open; 0: none.
    pub open: AtomicU64,
    /// When that call was entered, ticks.
    pub entered: AtomicU64,
    /// Calls finished: the next ring entry's index.
    pub head: AtomicU64,
    /// Calls that were made while the journal was frozen.
    pub unrecorded: AtomicU64,
    pub rounds: AtomicU64,
    pub kept: AtomicU64,
    /// 0: the thread has not begun.
    pub tid: AtomicU64,
    pad: u64,
}

/// A finished call: 32 bytes.
#[repr(C, align(32))]
pub(super) struct Entry {
    pub enter: AtomicU64,
    pub leave: AtomicU64,
    /// [`packed`] call.
    pub what: AtomicU64,
    /// Result in the upper half, low half of the index in the lower.
    pub result_index: AtomicU64,
}

/// A thread's block up to its ring.
#[repr(C, align(4096))]
pub(super) struct ThreadBlock {
    pub state: State,
    pub counts: [AtomicU64; CALL_NUMBERS],
    pub errors: [AtomicU64; CALL_NUMBERS],
    pub latency: [[AtomicU64; BUCKETS]; HotCall::ALL.len()],
}

/// Where things are for a given number of threads and length of ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Blocks, the main thread's included.
    pub blocks: usize,
    /// Entries of a ring: a power of two.
    pub ring: usize,
}

pub(super) const CONTROL_AT: usize = PAGE;
/// Last words of a dying child: in the control page, behind the control.
pub(super) const LAST_WORDS_AT: usize = CONTROL_AT + PAGE / 2;
pub(super) const NOTES_AT: usize = 2 * PAGE;
const NOTE_SLOTS_AT: usize = NOTES_AT + 64;
const THREADS_AT: usize = (NOTE_SLOTS_AT + NOTE_SLOTS * size_of::<NoteSlot>()).next_multiple_of(PAGE);

impl Geometry {
    /// For `threads` workers (and the main thread), rings of at least `ring` entries.
    pub fn new(threads: usize, ring: usize) -> Geometry {
        let ring = ring.clamp(MIN_RING, MAX_RING).next_power_of_two();
        Geometry { blocks: threads.clamp(1, MAX_THREADS) + 1, ring }
    }

    /// Bytes of a thread's block.
    pub fn stride(&self) -> usize {
        (size_of::<ThreadBlock>() + self.ring * size_of::<Entry>()).next_multiple_of(PAGE)
    }

    /// Bytes of it all.
    pub fn size(&self) -> usize {
        THREADS_AT + self.blocks * self.stride()
    }

    /// Where block `index` begins.
    pub fn block(&self, index: usize) -> usize {
        THREADS_AT + index * self.stride()
    }

    /// Where ring entry `slot` of block `index` lies.
    pub fn entry(&self, index: usize, slot: usize) -> usize {
        self.block(index) + size_of::<ThreadBlock>() + slot * size_of::<Entry>()
    }

    /// Where note `slot` lies.
    pub fn note(&self, slot: usize) -> usize {
        NOTE_SLOTS_AT + slot * size_of::<NoteSlot>()
    }
}

/// Where the counters of a block lie in it.
pub(super) const COUNTS_IN_BLOCK: usize = offset_of!(ThreadBlock, counts);
/// Where the latency buckets of a block lie in it.
pub(super) const LATENCY_IN_BLOCK: usize = offset_of!(ThreadBlock, latency);

/// A call's number and a module serial (its low 56 bits) in one word.
pub(super) const fn packed(number: u8, serial: u64) -> u64 {
    (number as u64) << SERIAL_BITS | serial & ((1 << SERIAL_BITS) - 1)
}

/// The call's number and the module serial of a [`packed`] word.
pub(super) const fn unpacked(word: u64) -> (u8, u64) {
    ((word >> SERIAL_BITS) as u8, word & ((1 << SERIAL_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_apart_and_aligned() {
        let g = Geometry::new(3, 5000);
        assert_eq!((g.blocks, g.ring), (4, 8192));
        assert_eq!(size_of::<Entry>(), 32);
        assert_eq!(size_of::<State>(), 64);
        assert_eq!(size_of::<NoteSlot>(), 512);
        assert!(g.note(NOTE_SLOTS) <= g.block(0));
        assert_eq!(g.block(1) % PAGE, 0);
        assert_eq!(g.entry(0, 0) % 64, 0);
        assert!(g.entry(0, g.ring) <= g.block(1));
        assert_eq!(g.block(g.blocks), g.size());
        assert_eq!(g.block(2) - g.block(1), g.stride());
    }

    #[test]
    fn a_packed_word_gives_its_parts_back() {
        assert_eq!(unpacked(packed(66, (1 << 56) - 1)), (66, (1 << 56) - 1));
        assert_eq!(unpacked(packed(12, 7)), (12, 7));
    }
}
