//! Where code was mapped: a log of every mapping of a child that became executable, kept from outside.
//!
//! A software event that counts nothing (`PERF_COUNT_SW_DUMMY`) with `mmap2` records, one for each processor, inherited by
//! all threads and children. It costs the child nothing that can be measured, and needs no privilege up to
//! `perf_event_paranoid` 2. Unmapping is not logged: that something *was* mapped is all that it says.
#![allow(unsafe_code)] // perf_event_open and its shared ring have no safe form.

use crate::evidence::ExecutableMapping;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;
/// Rings of all processors together, bytes; each has at least four pages.
const RINGS: usize = 8 << 20;
/// Mappings remembered at most; the oldest are forgotten first.
const MOST: usize = 200_000;

/// `struct perf_event_attr` up to its fifth version, from the kernel's `linux/perf_event.h`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_kind: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
const SAMPLE_TID_TIME: u64 = 1 << 1 | 1 << 2;
/// inherit, exclude_kernel, mmap, task, watermark, sample_id_all, mmap2, use_clockid.
const FLAGS: u64 = 1 << 1 | 1 << 5 | 1 << 8 | 1 << 13 | 1 << 14 | 1 << 18 | 1 << 23 | 1 << 25;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Offsets of `data_head` and `data_tail` in the ring's first page.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;
const RECORD_LOST: u32 = 2;
const RECORD_MMAP2: u32 = 10;

/// One processor's ring.
#[derive(Debug)]
struct Ring {
    event: OwnedFd,
    base: NonNull<u8>,
    data: usize,
}

/// The log of one child and all that it starts.
#[derive(Debug)]
pub struct ExecLog {
    rings: Vec<Ring>,
    /// By first address: the latest mapping there.
    latest: BTreeMap<u64, Entry>,
    order: VecDeque<u64>,
    names: BTreeMap<Vec<u8>, Arc<str>>,
    lost: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    at_ns: u64,
    tid: i32,
    length: u64,
    name: Arc<str>,
}

impl ExecLog {
    /// Begins to log a process. Call while it waits at its gate, so that nothing is missed.
    pub fn of(pid: i32) -> io::Result<ExecLog> {
        let processors = processors();
        let pages = (RINGS / PAGE / processors.len().max(1)).clamp(4, 256).next_power_of_two();
        let mut rings = Vec::with_capacity(processors.len());
        for processor in processors {
            rings.push(Ring::open_smaller_and_smaller(pid, processor, pages)?);
        }
        Ok(ExecLog { rings, latest: BTreeMap::new(), order: VecDeque::new(), names: BTreeMap::new(), lost: 0 })
    }

    /// What to poll for reading: readable when a ring is half full.
    pub fn poll_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.event.as_fd())
    }

    /// Takes what has been logged.
    pub fn drain(&mut self) {
        let rings = std::mem::take(&mut self.rings);
        for ring in &rings {
            ring.drain(|record| self.take(record));
        }
        self.rings = rings;
    }

    /// Records that the kernel had no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The latest mapping that covered an address.
    pub fn covering(&self, address: u64) -> Option<ExecutableMapping> {
        // Mappings may overlap in time: the latest of those that begin near below is meant.
        let below = self.latest.range(..=address).rev().take(64);
        let covering = below.filter(|(start, entry)| address - **start < entry.length);
        covering.max_by_key(|(_, entry)| entry.at_ns).map(|(&start, entry)| ExecutableMapping {
            at_ns: entry.at_ns,
            tid: entry.tid,
            start,
            length: entry.length,
            name: entry.name.to_string(),
        })
    }

    fn take(&mut self, record: &[u8]) {
        match record_kind(record) {
            RECORD_LOST => self.lost += word64(record, 16).unwrap_or(0),
            RECORD_MMAP2 => {
                if let Some((start, entry)) = self.parse(record) {
                    self.insert(start, entry);
                }
            }
            _ => {}
        }
    }

    fn parse(&mut self, record: &[u8]) -> Option<(u64, Entry)> {
        let (tid, start, length) = (word64(record, 8)? >> 32, word64(record, 16)?, word64(record, 24)?);
        let trailer = record.len().checked_sub(16).filter(|&at| at >= 72)?;
        let name = record[72..trailer].split(|&byte| byte == 0).next().unwrap_or_default();
        let name = match self.names.get(name) {
            Some(known) => Arc::clone(known),
            None => {
                if self.names.len() >= 4096 {
                    self.names.clear();
                }
                let text: Arc<str> = String::from_utf8_lossy(name).into();
                self.names.insert(name.to_vec(), Arc::clone(&text));
                text
            }
        };
        Some((start, Entry { at_ns: word64(record, trailer + 8)?, tid: tid as i32, length, name }))
    }

    fn insert(&mut self, start: u64, entry: Entry) {
        // Rings of several processors are read one after the other: an older record must not hide a newer one.
        if self.latest.get(&start).is_some_and(|known| known.at_ns > entry.at_ns) {
            return;
        }
        if self.latest.insert(start, entry).is_none() {
            self.order.push_back(start);
        }
        if self.latest.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.latest.remove(&oldest);
        }
    }
}

impl Ring {
    /// The memory that may be locked is limited for the unprivileged: a smaller ring is better than none.
    fn open_smaller_and_smaller(pid: i32, processor: i32, mut pages: usize) -> io::Result<Ring> {
        loop {
            match Ring::open(pid, processor, pages) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && pages > 4 => pages /= 2,
                answer => return answer,
            }
        }
    }

    fn open(pid: i32, processor: i32, pages: usize) -> io::Result<Ring> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: DUMMY,
            sample_type: SAMPLE_TID_TIME,
            flags: FLAGS,
            wakeup_watermark: (pages * PAGE / 2) as u32,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads `attributes`, whose size it is told; the other arguments are numbers.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, pid, processor, -1, CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just handed out this descriptor; nobody else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let (length, access) = ((pages + 1) * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a fresh shared mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, event.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Ring { event, base, data: pages * PAGE }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both positions are aligned 64-bit words in the ring's first page, which is mapped while `self` lives and
        // which the kernel accesses with the matching barriers.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU64>() }
    }

    fn drain(&self, mut take: impl FnMut(&[u8])) {
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        let mut tail = self.position(TAIL_AT).load(Ordering::Relaxed);
        let mut record = Vec::new();
        while tail < head {
            self.copy(tail, 8, &mut record);
            let size = usize::from(u16::from_le_bytes([record[6], record[7]]));
            if size < 8 || size as u64 > head - tail {
                tail = head;
                break;
            }
            self.copy(tail, size, &mut record);
            take(&record);
            tail += size as u64;
        }
        self.position(TAIL_AT).store(tail, Ordering::Release);
    }

    fn copy(&self, position: u64, length: usize, into: &mut Vec<u8>) {
        into.clear();
        let start = (position % self.data as u64) as usize;
        let first = length.min(self.data - start);
        // SAFETY: the data area is `self.data` bytes behind the first page; both parts lie in it, and the kernel does not
        // write between tail and head.
        unsafe {
            let data = self.base.as_ptr().add(PAGE);
            into.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            into.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), PAGE + self.data) };
    }
}

fn record_kind(record: &[u8]) -> u32 {
    record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn word64(record: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(record.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Numbers of the processors that are on.
fn processors() -> Vec<i32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".to_owned());
    parse_processors(list.trim())
}

fn parse_processors(list: &str) -> Vec<i32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    list.split(',').filter_map(range).flatten().take(4096).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> ExecLog {
        ExecLog { rings: Vec::new(), latest: BTreeMap::new(), order: VecDeque::new(), names: BTreeMap::new(), lost: 0 }
    }

    /// A record as the kernel writes it.
    fn mmap2(tid: u32, start: u64, length: u64, at_ns: u64, name: &str) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend([1u32, tid].iter().flat_map(|word| word.to_le_bytes()));
        body.extend([start, length].iter().flat_map(|word| word.to_le_bytes()));
        body.resize(64, 0);
        body.extend(name.as_bytes());
        body.resize((name.len() + 1 + 64).next_multiple_of(8), 0);
        body.extend([u64::from(tid) << 32 | 1, at_ns].iter().flat_map(|word| word.to_le_bytes()));
        let mut record = RECORD_MMAP2.to_le_bytes().to_vec();
        record.extend([2u16, body.len() as u16 + 8].iter().flat_map(|word| word.to_le_bytes()));
        record.extend(body);
        record
    }

    #[test]
    fn the_latest_mapping_over_an_address_is_found() {
        let mut log = log();
        log.take(&mmap2(7, 0x1000, 0x1000, 5, "//anon"));
        log.take(&mmap2(8, 0x1000, 0x3000, 9, "/lib/x.so"));
        log.take(&mmap2(7, 0x1000, 0x1000, 6, "//anon"));
        let found = log.covering(0x3fff).unwrap();
        assert_eq!((found.tid, found.at_ns, found.name.as_str()), (8, 9, "/lib/x.so"));
        assert!(log.covering(0x4000).is_none() && log.covering(0xfff).is_none());
    }

    #[test]
    fn memory_is_bounded_and_cut_records_are_dropped() {
        let mut log = log();
        for n in 0..(MOST as u64 + 10) {
            log.take(&mmap2(1, n << 12, 0x1000, n, "//anon"));
        }
        assert_eq!(log.latest.len(), MOST);
        assert!(log.covering(0).is_none());
        let record = mmap2(1, 0, 0x1000, 1, "//anon");
        for cut in 0..record.len() {
            log.take(&record[..cut]);
        }
    }

    #[test]
    fn processor_lists_are_ranges() {
        assert_eq!(parse_processors("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(parse_processors("x"), Vec::<i32>::new());
    }
}
