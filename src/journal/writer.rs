//! The worker's side: what a thread writes before and after each driver call.
//!
//! The hot path ([`ThreadWriter::enter`], [`ThreadWriter::leave`], [`ThreadWriter::next`]) allocates nothing, locks nothing and
//! makes no system call; it writes to its own thread's block only. While the supervisor has frozen the journal, writers go on
//! running but leave counters, state word and ring as they were at the moment of the fault.
#![allow(unsafe_code)] // maps the shared memory and looks at it through atomics

use super::clock;
use super::latency::{HIGHEST_NS, HotCall, bucket_index};
use super::layout::{CLOCK_TSC, CONTROL_AT, Control, Entry, Geometry, Header, MAGIC, ThreadBlock, VERSION, packed};
use crate::vocabulary::Call;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::os::fd::AsFd;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The hot call's counter row, plus one; 0: no latency is kept. Indexed by the call's number.
static LATENCY_ROW: [u8; 128] = latency_rows();

const fn latency_rows() -> [u8; 128] {
    let mut rows = [0; 128];
    let mut i = 0;
    while i < Call::ALL.len() {
        if let Some(hot) = HotCall::of(Call::ALL[i]) {
            rows[Call::ALL[i] as usize] = hot as u8 + 1;
        }
        i += 1;
    }
    rows
}

/// The journal, mapped for writing for the rest of the process's life. Cheap to copy, usable from every thread.
#[derive(Clone, Copy)]
pub struct JournalWriter {
    pub(super) base: *mut u8,
    pub(super) geometry: Geometry,
    pub(super) tsc: bool,
    ns_per_tick_32: u64,
}

// SAFETY: the memory behind `base` stays mapped for the life of the process and is touched through atomics only.
unsafe impl Send for JournalWriter {}
// SAFETY: as above.
unsafe impl Sync for JournalWriter {}

impl JournalWriter {
    /// Maps the journal that the supervisor handed down.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] where it is not a journal of this version; otherwise what `fstat` or `mmap` answered.
    pub fn attach(fd: impl AsFd) -> io::Result<JournalWriter> {
        let fd = fd.as_fd();
        let size = usize::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0);
        if size < Geometry::new(1, 0).size() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too short to be a journal"));
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that is sealed against shrinking.
        let base =
            unsafe { rustix::mm::mmap(null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)? };
        let base = base.cast::<u8>();
        // SAFETY: the mapping is page-aligned, longer than a header, never unmapped, and consists of atomics.
        let header = unsafe { &*base.cast::<Header>() };
        let geometry =
            Geometry::new((header.blocks.load(Relaxed) as usize).saturating_sub(1), header.ring.load(Relaxed) as usize);
        if header.magic.load(Relaxed) != MAGIC || header.version.load(Relaxed) != VERSION || geometry.size() != size {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a journal of this version"));
        }
        let tsc = header.clock.load(Relaxed) == CLOCK_TSC;
        Ok(JournalWriter { base, geometry, tsc, ns_per_tick_32: header.ns_per_tick_32.load(Relaxed) })
    }

    pub(super) fn control(&self) -> &'static Control {
        // SAFETY: CONTROL_AT is page-aligned and inside the mapping, which is never unmapped and consists of atomics.
        unsafe { &*self.base.add(CONTROL_AT).cast::<Control>() }
    }

    /// Now, in the journal's ticks.
    #[inline(always)]
    pub(super) fn tick(&self) -> u64 {
        if self.tsc { clock::tsc() } else { clock::monotonic_ns() }
    }

    /// Threads that the journal was made for, without the main thread.
    pub fn threads(&self) -> usize {
        self.geometry.blocks - 1
    }

    /// The writer of thread `index`, counted from 0. To be used by one thread at a time (two would garble each other's records
    /// and nothing else).
    ///
    /// # Panics
    /// When the journal was made for fewer threads.
    pub fn thread(&self, index: usize) -> ThreadWriter {
        assert!(index < self.threads(), "the journal was made for {} threads", self.threads());
        self.block(index)
    }

    /// The writer of the worker's main thread: setup and teardown. In a snapshot it is the last thread.
    pub fn main_thread(&self) -> ThreadWriter {
        self.block(self.geometry.blocks - 1)
    }

    fn block(&self, index: usize) -> ThreadWriter {
        let at = self.geometry.block(index);
        // SAFETY: the geometry was checked against the mapping's size: the block is inside, page-aligned, and atomics.
        let block = unsafe { &*self.base.add(at).cast::<ThreadBlock>() };
        // SAFETY: the block's ring: inside the mapping as above, aligned to 32 bytes, and atomics.
        let ring = unsafe {
            let first = self.base.add(self.geometry.entry(index, 0)).cast::<Entry>();
            std::slice::from_raw_parts(first, self.geometry.ring)
        };
        let head = block.state.head.load(Relaxed);
        ThreadWriter { journal: *self, control: self.control(), block, ring, head, recording: true }
    }

    /// Whether the supervisor has asked the child to finish: one load.
    #[inline]
    pub fn stop_requested(&self) -> bool {
        self.control().stop.load(Relaxed) != 0
    }

    /// Says that setup is over and the loop begins.
    pub fn set_began(&self) {
        self.control().began.store(self.tick().max(1), Release);
    }

    /// Says that the order is finished.
    pub fn set_finished(&self) {
        self.control().finished.store(self.tick().max(1), Release);
    }
}

/// A call that was entered. Has to be given back to [`ThreadWriter::leave`] or [`ThreadWriter::next`].
#[must_use = "a call that was entered has to be left"]
pub struct Entered {
    /// Packed call; 0: not recorded.
    what: u64,
    tick: u64,
}

/// One thread's pen.
pub struct ThreadWriter {
    journal: JournalWriter,
    control: &'static Control,
    block: &'static ThreadBlock,
    ring: &'static [Entry],
    head: u64,
    recording: bool,
}

impl ThreadWriter {
    /// Says that this thread has begun: writes its id, and touches its block's pages so that the loop does not fault them in.
    pub fn begin(&mut self) {
        let start: *const ThreadBlock = self.block;
        let address = without_provenance_mut(start.addr());
        // SAFETY: populating pages of our own shared mapping changes nothing that they hold. Where the kernel cannot (before
        // 5.14), the loop faults them in.
        let _ = unsafe { rustix::mm::madvise(address, self.journal.geometry.stride(), Advice::LinuxPopulateWrite) };
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        self.block.state.tid.store(u64::from(tid.unsigned_abs()), Release);
    }

    /// Switches recording on or off. Off, enter and leave do nothing: what is left is the cost of the loop itself.
    pub fn set_recording(&mut self, on: bool) {
        self.recording = on;
    }

    /// Records that `call` is entered, on the module with this serial (0: none).
    #[inline(always)]
    pub fn enter(&mut self, call: Call, module: u64) -> Entered {
        if !self.recording {
            return Entered { what: 0, tick: 0 };
        }
        let tick = self.journal.tick();
        self.open(call, module, tick)
    }

    /// Records that the call was left with this answer.
    #[inline(always)]
    pub fn leave(&mut self, entered: Entered, result: i32) {
        if self.recording {
            let tick = self.journal.tick();
            self.close(entered, result, tick);
        }
    }

    /// Records that the call was left with this answer and that the next is entered at once: one reading of the clock for both.
    /// The time between the two counts for the second.
    #[inline(always)]
    pub fn next(&mut self, entered: Entered, result: i32, call: Call, module: u64) -> Entered {
        if !self.recording {
            return Entered { what: 0, tick: 0 };
        }
        let tick = self.journal.tick();
        self.close(entered, result, tick);
        self.open(call, module, tick)
    }

    /// Records that a round of the loop is done.
    #[inline]
    pub fn round_done(&mut self) {
        if self.recording && !self.frozen() {
            add(&self.block.state.rounds, 1);
        }
    }

    /// Records how many modules this thread keeps loaded.
    #[inline]
    pub fn kept(&mut self, modules: u64) {
        if self.recording && !self.frozen() {
            self.block.state.kept.store(modules, Relaxed);
        }
    }

    #[inline(always)]
    fn frozen(&self) -> bool {
        // Acquire, so that what follows is not written before the word was read.
        self.control.freeze.load(Acquire) != 0
    }

    #[inline(always)]
    fn open(&mut self, call: Call, module: u64, tick: u64) -> Entered {
        if self.frozen() {
            return Entered { what: 0, tick };
        }
        let what = packed(call as u8, module);
        self.block.state.entered.store(tick, Relaxed);
        self.block.state.open.store(what, Release);
        Entered { what, tick }
    }

    #[inline(always)]
    fn close(&mut self, entered: Entered, result: i32, tick: u64) {
        if entered.what == 0 || self.frozen() {
            return self.skip();
        }
        let number = (entered.what >> 56) as usize & 127;
        let entry = &self.ring[self.head as usize & (self.ring.len() - 1)];
        entry.enter.store(entered.tick, Relaxed);
        entry.leave.store(tick, Relaxed);
        entry.what.store(entered.what, Relaxed);
        entry.result_index.store(u64::from(result.cast_unsigned()) << 32 | self.head & 0xffff_ffff, Relaxed);
        self.head += 1;
        self.block.state.head.store(self.head, Release);
        self.block.state.open.store(0, Release);
        add(&self.block.counts[number], 1);
        if result != 0 {
            add(&self.block.errors[number], 1);
        }
        if let Some(row) = (LATENCY_ROW[number] as usize).checked_sub(1) {
            let ticks = tick.saturating_sub(entered.tick);
            let ns = ((u128::from(ticks) * u128::from(self.journal.ns_per_tick_32)) >> 32) as u64;
            add(&self.block.latency[row][bucket_index(ns.min(HIGHEST_NS))], 1);
        }
    }

    /// A call whose end (or beginning) fell into a freeze: counted, nothing else. When the freeze is over, its state word must
    /// not claim any longer that the call is open.
    #[cold]
    fn skip(&mut self) {
        add(&self.block.state.unrecorded, 1);
        if !self.frozen() {
            self.block.state.open.store(0, Release);
        }
    }
}

/// Adds to a counter that this thread alone writes: no locked instruction.
#[inline(always)]
fn add(counter: &std::sync::atomic::AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}
