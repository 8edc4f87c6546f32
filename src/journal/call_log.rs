//! `--journal full`: every call of a child, on disk.
//!
//! The child does nothing for it and never waits: its rings are made long ([`FULL_RING`] entries) and the supervisor drains them
//! at every tick and once at the end. What was overwritten before it was drained is counted as lost and said so.
//!
//! ```text
//! file   "cubin-stress/calls/1\n" block*
//! block  u32 length of what follows, then varints: thread, calls lost since its last block, index of the first call,
//!        time from which the first call counts (ns), calls, and for each call:
//!        enter since the leave before, leave since enter, call, module - the module before (zigzag), result (zigzag)
//! ```
//! Six to nine bytes a call. Numbers are LEB128. A file that was cut off, or that holds nonsense, is read up to there.

use super::CallRecord;
use super::reader::{Journaled, Source};
use crate::vocabulary::Call;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// First line of a file of calls.
const MAGIC: &[u8] = b"cubin-stress/calls/1\n";
/// Ring entries a thread where all calls are kept: 8 MiB, a quarter of a second of one call a microsecond.
pub const FULL_RING: usize = 1 << 18;
/// No block is longer, bytes.
const LONGEST_BLOCK: usize = 64 << 20;

/// A file of calls that is being written.
#[derive(Debug)]
pub struct CallLog {
    file: BufWriter<File>,
    /// Index of the next call of each thread.
    next: Vec<u64>,
    /// Calls of each thread that were overwritten since its last block.
    lost_since: Vec<u64>,
    bytes: u64,
    most_bytes: u64,
    written: u64,
    lost: u64,
    failed: Option<io::Error>,
}

/// What a file of calls holds.
#[derive(Debug)]
pub struct CallLogEnd {
    /// Calls in it.
    pub written: u64,
    /// Calls that were made and are not in it.
    pub lost: u64,
    /// Why it ends early, if it does: the disk, or its limit.
    pub failed: Option<io::Error>,
}

impl CallLog {
    /// Makes the file. Beyond `most_bytes` nothing is written, only counted.
    ///
    /// # Errors
    /// When it cannot be made, or is there already.
    pub fn create(path: &Path, most_bytes: u64) -> io::Result<CallLog> {
        let mut file = BufWriter::new(File::options().write(true).create_new(true).open(path)?);
        file.write_all(MAGIC)?;
        Ok(CallLog {
            file,
            next: Vec::new(),
            lost_since: Vec::new(),
            bytes: MAGIC.len() as u64,
            most_bytes,
            written: 0,
            lost: 0,
            failed: None,
        })
    }

    /// Adds calls of a thread, of which `lost` others went before.
    fn add(&mut self, thread: usize, calls: &[CallRecord], lost: u64) {
        self.lost += lost;
        self.lost_since[thread] += lost;
        if calls.is_empty() {
            return;
        }
        let block = block(thread, self.lost_since[thread], calls);
        if self.failed.is_none() && self.bytes + block.len() as u64 > self.most_bytes {
            self.failed = Some(io::Error::new(io::ErrorKind::FileTooLarge, "the limit of this file is reached"));
        }
        if self.failed.is_none() {
            self.failed = self.file.write_all(&block).err();
        }
        if self.failed.is_some() {
            self.lost += calls.len() as u64;
            self.lost_since[thread] += calls.len() as u64;
            return;
        }
        self.bytes += block.len() as u64;
        self.written += calls.len() as u64;
        self.lost_since[thread] = 0;
    }

    /// Writes out what is in memory and says what the file holds.
    pub fn finish(mut self) -> CallLogEnd {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        CallLogEnd { written: self.written, lost: self.lost, failed: self.failed.or(flushed.err()) }
    }
}

impl<S: Source> Journaled<'_, S> {
    /// Writes the calls that were finished since the last time.
    pub fn drain_into(&self, log: &mut CallLog) {
        log.next.resize(self.geometry.blocks, 0);
        log.lost_since.resize(self.geometry.blocks, 0);
        for thread in 0..self.geometry.blocks {
            let next = log.next[thread];
            let Ok(head) = self.state(thread, &self.time()).map(|state| state.head) else { continue };
            let wanted = usize::try_from(head.saturating_sub(next)).unwrap_or(usize::MAX);
            if wanted == 0 {
                continue;
            }
            // A few more may be finished by now: the newest `wanted` then begin after `next`, and the gap is read as well.
            let Ok(last) = self.last_calls(thread, wanted.saturating_add(self.geometry.ring / 64)) else { continue };
            let calls = last.records.partition_point(|call| call.index < next);
            let calls = &last.records[calls..];
            let made = last.before.head.saturating_sub(next);
            log.add(thread, calls, made.saturating_sub(calls.len() as u64));
            log.next[thread] = last.before.head.max(next);
        }
    }
}

fn block(thread: usize, lost: u64, calls: &[CallRecord]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    let base = calls[0].enter_ns;
    for number in [thread as u64, lost, calls[0].index, base, calls.len() as u64] {
        put(&mut bytes, number);
    }
    let (mut left, mut module) = (base, 0);
    for call in calls {
        put(&mut bytes, call.enter_ns.saturating_sub(left));
        put(&mut bytes, call.leave_ns.saturating_sub(call.enter_ns));
        bytes.push(call.call as u8);
        put(&mut bytes, zigzag(call.module.wrapping_sub(module).cast_signed()));
        put(&mut bytes, zigzag(i64::from(call.result)));
        (left, module) = (call.leave_ns, call.module);
    }
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// Takes a number off the front; none where there is no whole one.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(|n| (n >> 1).cast_signed() ^ -(n & 1).cast_signed())
}

/// Some calls of one thread, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBlock {
    /// The thread's index in the journal.
    pub thread: usize,
    /// Calls that were made before these and after its block before, and are not in the file.
    pub lost: u64,
    /// The calls.
    pub calls: Vec<CallRecord>,
}

/// A file of calls that is being read: gives its blocks. An error ends it; what came before holds.
#[derive(Debug)]
pub struct CallBlocks<R> {
    file: R,
    ended: bool,
}

/// Opens a file of calls.
///
/// # Errors
/// When it cannot be read, or is no file of calls.
pub fn read_calls(path: &Path) -> io::Result<CallBlocks<BufReader<File>>> {
    CallBlocks::new(BufReader::new(File::open(path)?))
}

impl<R: Read> CallBlocks<R> {
    /// Reads from anything.
    ///
    /// # Errors
    /// When it cannot be read, or is no file of calls.
    pub fn new(mut file: R) -> io::Result<CallBlocks<R>> {
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file of calls"));
        }
        Ok(CallBlocks { file, ended: false })
    }

    fn next_block(&mut self) -> io::Result<Option<CallBlock>> {
        let mut length = Vec::with_capacity(4);
        (&mut self.file).take(4).read_to_end(&mut length)?;
        let Ok(length) = <[u8; 4]>::try_from(length.as_slice()).map(u32::from_le_bytes) else {
            return if length.is_empty() { Ok(None) } else { Err(cut_off()) };
        };
        if length as usize > LONGEST_BLOCK {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a block of calls makes no sense"));
        }
        let mut bytes = Vec::new();
        (&mut self.file).take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(cut_off());
        }
        let nonsense = || io::Error::new(io::ErrorKind::InvalidData, "a block of calls makes no sense");
        parse(&bytes).map(Some).ok_or_else(nonsense)
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file of calls was cut off")
}

fn parse(mut bytes: &[u8]) -> Option<CallBlock> {
    let bytes = &mut bytes;
    let thread = usize::try_from(take(bytes)?).ok()?;
    let (lost, index, base, count) = (take(bytes)?, take(bytes)?, take(bytes)?, take(bytes)?);
    let (mut left, mut module) = (base, 0u64);
    // A call takes five bytes at least, so a false count cannot ask for much.
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len() / 5)?;
    let mut calls = Vec::with_capacity(count);
    for i in 0..count as u64 {
        let enter_ns = left.checked_add(take(bytes)?)?;
        let leave_ns = enter_ns.checked_add(take(bytes)?)?;
        let (&number, rest) = bytes.split_first()?;
        *bytes = rest;
        module = module.wrapping_add(take_signed(bytes)?.cast_unsigned());
        let result = i32::try_from(take_signed(bytes)?).ok()?;
        let call = Call::from_number(number)?;
        calls.push(CallRecord { index: index.checked_add(i)?, call, module, enter_ns, leave_ns, result });
        left = leave_ns;
    }
    bytes.is_empty().then_some(CallBlock { thread, lost, calls })
}

impl<R: Read> Iterator for CallBlocks<R> {
    type Item = io::Result<CallBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let block = self.next_block().transpose();
        self.ended = !matches!(block, Some(Ok(_)));
        block
    }
}

#[cfg(test)]
#[path = "call_log_tests.rs"]
mod tests;
