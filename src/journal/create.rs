//! The supervisor's handle on a journal: makes it, freezes it, asks the child to stop.
//!
//! The supervisor never maps this memory: it reads with `pread` into buffers of its own and writes its two words with `pwrite`.
//! So a hostile child can neither race a read inside a bounds check nor cost us a SIGBUS, and no `unsafe` is needed. The file
//! is sealed against shrinking and growing before the child sees it.

use super::clock::{Clock, Moment};
use super::layout::{CLOCK_MONOTONIC, CLOCK_TSC, CONTROL_AT, Control, Geometry, Header, MAGIC, MIN_RING, VERSION};
use super::reader::{Journaled, Progress};
use super::totals::Totals;
use super::{CallLog, CallWindow, ClockSource, Snapshot};
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// How large a journal is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSpec {
    /// Threads of the workload; the worker's main thread has a record of its own besides.
    pub threads: usize,
    /// Last calls kept a thread: at least 4,096, rounded up to a power of two.
    pub ring_capacity: usize,
}

impl Default for JournalSpec {
    fn default() -> Self {
        JournalSpec { threads: 2, ring_capacity: MIN_RING }
    }
}

/// A journal, as its maker holds it.
#[derive(Debug)]
pub struct Journal {
    file: File,
    pub(super) geometry: Geometry,
    pub(super) clock: Clock,
}

impl Journal {
    /// Makes an empty journal in a sealed memfd (close-on-exec: hand it down with a file action).
    ///
    /// # Errors
    /// What `memfd_create`, `ftruncate`, `pwrite` or `fcntl` answered.
    pub fn create(spec: &JournalSpec) -> io::Result<Journal> {
        let geometry = Geometry::new(spec.threads, spec.ring_capacity);
        let clock = Clock::start();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("stress-journal", flags)?);
        file.set_len(geometry.size() as u64)?;
        file.write_all_at(&header(&geometry, &clock), 0)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Journal { file, geometry, clock })
    }

    /// The descriptor to hand to the child.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where its times come from.
    pub fn clock_source(&self) -> ClockSource {
        self.clock.source
    }

    /// Writers stop recording (not running) from now on: the moment of a fault stays.
    ///
    /// # Errors
    /// What `pwrite` answered.
    pub fn freeze(&self) -> io::Result<()> {
        self.set(offset_of!(Control, freeze), 1)
    }

    /// Writers record again: the signal was one that the program handles.
    ///
    /// # Errors
    /// What `pwrite` answered.
    pub fn thaw(&self) -> io::Result<()> {
        self.set(offset_of!(Control, freeze), 0)
    }

    /// Asks the child to finish its round and leave.
    ///
    /// # Errors
    /// What `pwrite` answered.
    pub fn request_stop(&self) -> io::Result<()> {
        self.set(offset_of!(Control, stop), 1)
    }

    pub(super) fn set(&self, offset: usize, value: u32) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), (CONTROL_AT + offset) as u64)
    }

    /// Reads everything but the latencies; of each thread at most `last_calls` last calls.
    pub fn snapshot(&self, last_calls: usize) -> Snapshot {
        self.journaled().snapshot(last_calls)
    }

    /// Reads how often each call was made, and how long the hot ones took.
    pub fn totals(&self) -> Totals {
        self.journaled().totals()
    }

    /// Reads how far each thread is: 64 bytes a thread.
    pub fn progress(&self) -> Progress {
        self.journaled().progress()
    }

    /// Reads at most `calls` last calls of each thread, for exposure.
    pub fn window(&self, calls: usize) -> CallWindow {
        self.journaled().window(calls)
    }

    /// Writes the calls that were finished since the last time to a file of all calls.
    pub fn drain_into(&self, log: &mut CallLog) {
        self.journaled().drain_into(log);
    }

    /// Threads that have a record, the worker's main thread included.
    pub fn threads(&self) -> usize {
        self.geometry.blocks
    }

    /// Bytes of it, not to be trusted.
    pub(super) fn copy(&self, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        self.journaled().copy(offset, length)
    }

    fn journaled(&self) -> Journaled<'_, File> {
        Journaled::new(&self.file, self.geometry, self.clock)
    }
}

/// The bytes of a header.
fn header(geometry: &Geometry, clock: &Clock) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<Header>()];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let source = if clock.source == ClockSource::Tsc { CLOCK_TSC } else { CLOCK_MONOTONIC };
    put(offset_of!(Header, magic), &MAGIC.to_le_bytes());
    put(offset_of!(Header, version), &VERSION.to_le_bytes());
    put(offset_of!(Header, blocks), &(geometry.blocks as u32).to_le_bytes());
    put(offset_of!(Header, ring), &(geometry.ring as u32).to_le_bytes());
    put(offset_of!(Header, clock), &source.to_le_bytes());
    let Moment { tick, mono_ns } = clock.made;
    put(offset_of!(Header, tick0), &tick.to_le_bytes());
    put(offset_of!(Header, mono0), &mono_ns.to_le_bytes());
    put(offset_of!(Header, ns_per_tick_32), &clock.fixed_point().to_le_bytes());
    bytes
}
