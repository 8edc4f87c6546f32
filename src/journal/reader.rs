//! The supervisor's reading of a journal: snapshots and progress.
//!
//! Every byte is hostile: the child may have overwritten any of it, at any time, also between two of our reads. So each part is
//! copied out once and then judged; sizes and the clock come from the journal's maker, never from the memory; nothing loops on
//! what it reads, nothing panics. What makes no sense is left out and said in `soft_errors`.

use super::clock::{Clock, Conversion, Moment};
use super::layout::{CALL_NUMBERS, COUNTS_IN_BLOCK, MAGIC, VERSION};
use super::layout::{CONTROL_AT, Control, Entry, Geometry, Header, State, ThreadBlock, unpacked};
use super::notes::{self, word};
use super::{CallRecord, CallTotals, InFlight, Snapshot, ThreadSnapshot};
use crate::vocabulary::Call;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;

/// What bytes can be copied out of.
pub(super) trait Source {
    /// Fills `bytes` from `offset` on.
    fn copy(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()>;
}

impl Source for File {
    fn copy(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, offset as u64)
    }
}

/// How far a child is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// When it was read, ns of `CLOCK_MONOTONIC`.
    pub read_ns: u64,
    /// When the loop began, ns; none: not yet.
    pub began_ns: Option<u64>,
    /// Whether the worker said that it had finished its order.
    pub finished: bool,
    /// The workload's threads, then the worker's main thread.
    pub threads: Vec<ThreadProgress>,
}

/// How far one thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadProgress {
    /// Thread id in the child; 0: it has not begun.
    pub tid: i32,
    /// Calls finished.
    pub calls: u64,
    /// Rounds finished.
    pub rounds: u64,
    /// The call that it is in.
    pub open: Option<InFlight>,
}

impl Progress {
    /// Rounds finished by all threads.
    pub fn rounds(&self) -> u64 {
        self.threads.iter().fold(0, |sum, t| sum.saturating_add(t.rounds))
    }

    /// Calls finished by all threads.
    pub fn calls(&self) -> u64 {
        self.threads.iter().fold(0, |sum, t| sum.saturating_add(t.calls))
    }

    /// The call that has been open longest, of any thread: its thread's index and its age, ns.
    pub fn oldest_open(&self) -> Option<(usize, InFlight, u64)> {
        let open = self.threads.iter().enumerate().filter_map(|(i, t)| t.open.map(|call| (i, call)));
        open.min_by_key(|(_, call)| call.entered_ns).map(|(i, c)| (i, c, self.read_ns.saturating_sub(c.entered_ns)))
    }
}

/// One thread's state line, judged.
pub(super) struct StateLine {
    pub open: Option<InFlight>,
    pub head: u64,
    unrecorded: u64,
    pub rounds: u64,
    pub kept: u64,
    tid: i32,
    sane: bool,
}

/// A thread's last calls, read while it may be running.
pub(super) struct LastCalls {
    /// Oldest first.
    pub records: Vec<CallRecord>,
    /// How many make no sense.
    nonsense: usize,
    /// The state line before the ring was read: its open call is the one after the newest record.
    pub before: StateLine,
    /// The state line after.
    after: StateLine,
}

/// A journal that is being read: bytes, and what its maker knows of them.
pub(super) struct Journaled<'a, S> {
    source: &'a S,
    pub geometry: Geometry,
    clock: Clock,
}

impl<'a, S: Source> Journaled<'a, S> {
    pub fn new(source: &'a S, geometry: Geometry, clock: Clock) -> Self {
        Journaled { source, geometry, clock }
    }

    /// From ticks to ns, as of now.
    pub fn time(&self) -> Conversion {
        self.clock.until(Moment::now(self.clock.source))
    }

    pub fn copy(&self, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.source.copy(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether the first page is as it was made: whether the child has written where it must not.
    pub fn header_damage(&self) -> Option<String> {
        let damaged = match self.copy(0, size_of::<Header>()) {
            Err(why) => return Some(format!("journal unreadable: {why}")),
            Ok(bytes) => {
                let version = word(&bytes, offset_of!(Header, version)) as u32;
                word(&bytes, offset_of!(Header, magic)) != MAGIC
                    || version != VERSION
                    || word(&bytes, offset_of!(Header, tick0)) != self.clock.made.tick
            }
        };
        damaged.then(|| "journal unreadable: its header was overwritten, so nothing in it is certain".to_owned())
    }

    /// When the loop began, and whether the order was finished.
    fn control(&self, time: &Conversion) -> (Option<u64>, bool) {
        let bytes = self.copy(CONTROL_AT, size_of::<Control>()).unwrap_or_default();
        let began = word(&bytes, offset_of!(Control, began));
        let began = (began != 0 && time.plausible(began)).then(|| time.ns(began));
        (began, word(&bytes, offset_of!(Control, finished)) != 0)
    }

    /// Block `index`'s state line.
    pub fn state(&self, index: usize, time: &Conversion) -> io::Result<StateLine> {
        let bytes = self.copy(self.geometry.block(index) + offset_of!(ThreadBlock, state), size_of::<State>())?;
        let (open, entered) = (word(&bytes, offset_of!(State, open)), word(&bytes, offset_of!(State, entered)));
        let (number, module) = unpacked(open);
        let call = Call::from_number(number).filter(|_| time.plausible(entered));
        let tid = i32::try_from(word(&bytes, offset_of!(State, tid)));
        let head = word(&bytes, offset_of!(State, head));
        let sane = (open == 0 || call.is_some()) && tid.is_ok() && self.possible(head, time);
        let head = if sane { head } else { 0 };
        Ok(StateLine {
            open: call.map(|call| InFlight { call, module, entered_ns: time.ns(entered) }),
            head,
            unrecorded: word(&bytes, offset_of!(State, unrecorded)),
            rounds: if sane { word(&bytes, offset_of!(State, rounds)) } else { 0 },
            kept: if sane { word(&bytes, offset_of!(State, kept)) } else { 0 },
            tid: tid.unwrap_or(0),
            sane,
        })
    }

    /// Whether a thread can have made this many calls: a call takes a ns at least.
    pub fn possible(&self, calls: u64, time: &Conversion) -> bool {
        calls <= time.now.mono_ns.saturating_sub(self.clock.made.mono_ns).saturating_add(1)
    }

    pub fn progress(&self) -> Progress {
        let time = self.time();
        let (began_ns, finished) = self.control(&time);
        let thread = |index| match self.state(index, &time) {
            Ok(s) => ThreadProgress { tid: s.tid, calls: s.head, rounds: s.rounds, open: s.open },
            Err(_) => ThreadProgress::default(),
        };
        let threads = (0..self.geometry.blocks).map(thread).collect();
        Progress { read_ns: time.now.mono_ns, began_ns, finished, threads }
    }

    pub fn snapshot(&self, last_calls: usize) -> Snapshot {
        let mut soft_errors = Vec::from_iter(self.header_damage());
        let mut threads = Vec::with_capacity(self.geometry.blocks);
        for index in 0..self.geometry.blocks {
            threads.push(self.thread(index, last_calls, &mut soft_errors));
        }
        let time = self.time();
        let (began_ns, finished) = self.control(&time);
        let (start, length) = notes::area(&self.geometry);
        let notes = match self.copy(start, length) {
            Ok(bytes) => notes::parse(&bytes, &self.geometry, &time, &mut soft_errors),
            Err(why) => {
                soft_errors.push(format!("journal unreadable: notes: {why}"));
                Vec::new()
            }
        };
        let read_ns = time.now.mono_ns;
        Snapshot { clock: self.clock.source, read_ns, began_ns, finished, threads, notes, soft_errors }
    }

    fn thread(&self, index: usize, last_calls: usize, soft_errors: &mut Vec<String>) -> ThreadSnapshot {
        let name = self.name(index);
        let read = || -> io::Result<_> { Ok((self.last_calls(index, last_calls)?, self.counts(index)?)) };
        let (LastCalls { records: last, nonsense, after: state, .. }, (totals, foreign)) = match read() {
            Ok(parts) => parts,
            Err(why) => {
                soft_errors.push(format!("journal unreadable: {name}: {why}"));
                return ThreadSnapshot::default();
            }
        };
        if !state.sane {
            soft_errors.push(format!("journal unreadable: {name}: its state makes no sense"));
        } else if nonsense > 0 {
            soft_errors.push(format!("journal unreadable in part: {name}: {nonsense} last calls make no sense"));
        }
        if foreign {
            soft_errors.push(format!("journal unreadable in part: {name}: counters make no sense"));
        }
        ThreadSnapshot {
            tid: state.tid,
            // Stopped between the ring entry and the state word: the call is over.
            in_flight: state.open.filter(|open| last.last().is_none_or(|l| l.enter_ns < open.entered_ns)),
            last,
            totals,
            rounds: state.rounds,
            kept: state.kept,
            unrecorded: state.unrecorded,
        }
    }

    pub fn name(&self, index: usize) -> String {
        if index + 1 == self.geometry.blocks { "main thread".to_owned() } else { format!("thread {index}") }
    }

    /// At most `wanted` last calls of block `index`.
    ///
    /// While the child runs, entries may be overwritten under our hands. The state line is read again after the ring: all
    /// entries whose slot may have been reused until then (the writer may be busy with the next one already) are left out.
    pub fn last_calls(&self, index: usize, wanted: usize) -> io::Result<LastCalls> {
        let ring = self.geometry.ring as u64;
        let before = self.state(index, &self.time())?;
        let first = before.head - before.head.min(wanted as u64).min(ring);
        let bytes = self.copy_ring(index, first, before.head)?;
        let time = self.time();
        let after = self.state(index, &time)?;
        let safe = (after.head + 1).saturating_sub(ring);
        let mut records: Vec<CallRecord> = Vec::with_capacity(bytes.len() / size_of::<Entry>());
        let mut nonsense = 0;
        for (entry, number) in bytes.chunks_exact(size_of::<Entry>()).zip(first..) {
            if number < safe {
                continue;
            }
            let not_before = records.last().map_or(0, |r| r.leave_ns);
            match record(entry, number, &time).filter(|r| r.enter_ns >= not_before) {
                Some(record) => records.push(record),
                None => nonsense += 1,
            }
        }
        Ok(LastCalls { records, nonsense, before, after })
    }

    /// The ring entries `first..end`, unrolled. At most a ring's length of them.
    fn copy_ring(&self, index: usize, first: u64, end: u64) -> io::Result<Vec<u8>> {
        let size = size_of::<Entry>();
        let slot = (first % self.geometry.ring as u64) as usize;
        let wanted = (end - first) as usize;
        let up_to_wrap = wanted.min(self.geometry.ring - slot);
        let mut bytes = vec![0; wanted * size];
        let (head, rest) = bytes.split_at_mut(up_to_wrap * size);
        self.source.copy(self.geometry.entry(index, slot), head)?;
        self.source.copy(self.geometry.entry(index, 0), rest)?;
        Ok(bytes)
    }

    /// Counters by call, and whether any of them cannot be true.
    pub fn counts(&self, index: usize) -> io::Result<(BTreeMap<Call, CallTotals>, bool)> {
        let bytes = self.copy(self.geometry.block(index) + COUNTS_IN_BLOCK, 2 * CALL_NUMBERS * 8)?;
        let time = self.time();
        let mut foreign = false;
        let mut totals = BTreeMap::new();
        for number in 0..CALL_NUMBERS {
            let (count, errors) = (word(&bytes, number * 8), word(&bytes, (CALL_NUMBERS + number) * 8));
            match Call::from_number(number as u8) {
                _ if count == 0 && errors == 0 => {}
                // Errors are counted after calls: a live reader may see one call more, never one error more.
                Some(call) if errors <= count && self.possible(count, &time) => {
                    totals.insert(call, CallTotals { count, errors });
                }
                _ => foreign = true,
            }
        }
        Ok((totals, foreign))
    }
}

fn record(entry: &[u8], number: u64, time: &Conversion) -> Option<CallRecord> {
    let (enter, leave) = (word(entry, offset_of!(Entry, enter)), word(entry, offset_of!(Entry, leave)));
    let (call, module) = unpacked(word(entry, offset_of!(Entry, what)));
    let result_index = word(entry, offset_of!(Entry, result_index));
    let sane = result_index as u32 == number as u32 && enter <= leave && time.plausible(enter) && time.plausible(leave);
    let call = Call::from_number(call).filter(|_| sane)?;
    let result = ((result_index >> 32) as u32).cast_signed();
    Some(CallRecord { index: number, call, module, enter_ns: time.ns(enter), leave_ns: time.ns(leave), result })
}
