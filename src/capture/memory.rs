//! Another process's memory, read page by page and remembered while the process stands still.
#![allow(unsafe_code)] // process_vm_readv has no safe form.

use std::cell::RefCell;
use std::collections::HashMap;

/// Size of a page on x86-64.
pub const PAGE: u64 = 4096;

/// Pages remembered at most: 64 MiB.
const MOST_PAGES: usize = 16 << 10;

/// Memory of a process that stands still. Reads never fail loudly: they end where the memory does.
#[derive(Debug)]
pub struct Memory {
    pid: i32,
    pages: RefCell<HashMap<u64, Option<Box<[u8]>>>>,
}

impl Memory {
    /// The memory of this process.
    pub fn of(pid: i32) -> Memory {
        Memory { pid, pages: RefCell::default() }
    }

    /// Reads as much as there is from `address` on, and answers how many bytes that were.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let part = self.read_in_page(at, &mut into[done..]);
            if part == 0 {
                break;
            }
            done += part;
        }
        done
    }

    fn read_in_page(&self, at: u64, into: &mut [u8]) -> usize {
        let (start, offset) = (at & !(PAGE - 1), (at % PAGE) as usize);
        let mut pages = self.pages.borrow_mut();
        if pages.len() >= MOST_PAGES {
            pages.clear();
        }
        let page = pages.entry(start).or_insert_with(|| {
            let mut page = vec![0; PAGE as usize].into_boxed_slice();
            (read_remote(self.pid, start, &mut page) == PAGE as usize).then_some(page)
        });
        let Some(page) = page else { return 0 };
        let length = into.len().min(page.len() - offset);
        into[..length].copy_from_slice(&page[offset..offset + length]);
        length
    }

    /// Brings a range in with one request, so that reads in it cost nothing.
    pub fn prefetch(&self, address: u64, length: u64) {
        let start = address & !(PAGE - 1);
        let Some(end) = address.checked_add(length).and_then(|end| end.checked_next_multiple_of(PAGE)) else { return };
        let mut buffer = vec![0; (end - start) as usize];
        let got = read_remote(self.pid, start, &mut buffer);
        let mut pages = self.pages.borrow_mut();
        for (index, page) in buffer[..got].chunks_exact(PAGE as usize).enumerate() {
            pages.insert(start + index as u64 * PAGE, Some(page.into()));
        }
    }

    /// The bytes that can be read from `address` on, at most `length`.
    pub fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let got = self.read(address, &mut bytes);
        bytes.truncate(got);
        bytes
    }

    /// A 64-bit word.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(address, &mut word) == 8).then_some(u64::from_le_bytes(word))
    }

    /// A value of 1 to 8 bytes.
    pub fn value(&self, address: u64, size: usize) -> Option<u64> {
        let mut word = [0; 8];
        let size = size.clamp(1, 8);
        (self.read(address, &mut word[..size]) == size).then_some(u64::from_le_bytes(word))
    }
}

/// One `process_vm_readv`; answers the bytes read, 0 on any error.
///
/// The kernel stops at the first page that it cannot read, so what is answered is a whole prefix.
pub fn read_remote(pid: i32, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes at most `into.len()` bytes into `into`; the remote address is checked by the kernel.
    let got = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_reads_back_across_pages() {
        let data: Vec<u8> = (0..3 * PAGE).map(|n| n as u8).collect();
        let memory = Memory::of(std::process::id() as i32);
        let address = data.as_ptr() as u64;
        assert_eq!(memory.bytes(address, data.len()), data);
        let word = u64::from_le_bytes(data[4093..4101].try_into().unwrap());
        assert_eq!(memory.word(address + 4093), Some(word));
    }

    #[test]
    fn unmapped_memory_reads_as_nothing() {
        let memory = Memory::of(std::process::id() as i32);
        assert!(memory.bytes(0x10, 16).is_empty());
        assert_eq!(memory.word(u64::MAX - 3), None);
        assert_eq!(memory.word(0x8000_0000_0000_0000), None);
        assert_eq!(Memory::of(i32::MAX).word(&raw const memory as u64), None);
    }
}
