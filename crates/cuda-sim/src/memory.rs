//! Device memory: host memory behind addresses that the host cannot touch, with bounds.
//!
//! Addresses come from a range that is reserved without access, so that a host program that reads a device pointer faults as
//! it does on a real machine, and never meets memory of its own.
#![allow(unsafe_code)] // memory that C programs name by address

use crate::error::{Answer, Code};
use crate::lock::Lock;
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Alignment of allocations, bytes.
const ALIGN: u64 = 512;
/// Sizes to try for the reserved range, bytes: a limit on address space may refuse the first.
const RANGES: [u64; 3] = [1 << 40, 1 << 36, 1 << 32];

/// The bytes behind one allocation.
pub struct Backing {
    bytes: *mut u8,
    layout: Layout,
}

// SAFETY: the bytes are plain memory; who reads or writes them when is the program's affair, as on a device.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    fn new(len: u64) -> Answer<Arc<Backing>> {
        let layout = Layout::from_size_align(len as usize, 64).map_err(|_| Code::OUT_OF_MEMORY)?;
        // SAFETY: the size is not zero: `allocate` refuses that.
        let bytes = unsafe { std::alloc::alloc_zeroed(layout) };
        if bytes.is_null() { Err(Code::OUT_OF_MEMORY) } else { Ok(Arc::new(Backing { bytes, layout })) }
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { std::alloc::dealloc(self.bytes, self.layout) };
    }
}

/// A stretch of device memory that some thread works on; keeps the bytes alive.
pub struct Span {
    /// Where the bytes are on the host.
    pub host: *mut u8,
    _backing: Arc<Backing>,
}

struct Allocation {
    len: u64,
    backing: Arc<Backing>,
    owner: u64,
}

struct State {
    live: BTreeMap<u64, Allocation>,
    next: u64,
    used: u64,
}

/// The memory of one device.
pub struct Memory {
    base: u64,
    size: u64,
    total: u64,
    state: Lock<State>,
}

impl Memory {
    /// Memory of `total` bytes, all free.
    pub fn new(total: u64) -> Memory {
        let (base, size) = reserve();
        Memory { base, size, total, state: Lock::new(State { live: BTreeMap::new(), next: base, used: 0 }) }
    }

    /// How many bytes there are, free or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes are free.
    pub fn free_bytes(&self) -> u64 {
        self.total - self.state.lock().used
    }

    /// Takes `len` bytes for context number `owner`.
    pub fn allocate(&self, len: u64, owner: u64) -> Answer<u64> {
        let size = len.checked_next_multiple_of(ALIGN).filter(|&size| size != 0).ok_or(Code::INVALID_VALUE)?;
        let mut state = self.state.lock();
        if size > self.total - state.used {
            return Err(Code::OUT_OF_MEMORY);
        }
        let address = self.find_gap(&state, size).ok_or(Code::OUT_OF_MEMORY)?;
        let backing = Backing::new(len)?;
        state.live.insert(address, Allocation { len, backing, owner });
        state.used += size;
        state.next = address + size;
        Ok(address)
    }

    /// Takes `len` bytes that no address names: code of modules.
    pub fn charge(&self, len: u64) -> Answer {
        let mut state = self.state.lock();
        if len > self.total - state.used {
            return Err(Code::OUT_OF_MEMORY);
        }
        state.used += len;
        Ok(())
    }

    /// Gives bytes of [`Memory::charge`] back.
    pub fn discharge(&self, len: u64) {
        let mut state = self.state.lock();
        state.used = state.used.saturating_sub(len);
    }

    /// First free place for `size` bytes: after the last allocation, else in the first gap.
    fn find_gap(&self, state: &State, size: u64) -> Option<u64> {
        if state.next + size <= self.base + self.size {
            return Some(state.next);
        }
        let mut at = self.base;
        for (&start, allocation) in &state.live {
            if start - at >= size {
                return Some(at);
            }
            at = start + allocation.len.next_multiple_of(ALIGN);
        }
        (at + size <= self.base + self.size).then_some(at)
    }

    /// Frees an allocation by its first address.
    pub fn free(&self, address: u64) -> Answer {
        let mut state = self.state.lock();
        let allocation = state.live.remove(&address).ok_or(Code::INVALID_VALUE)?;
        state.used -= allocation.len.next_multiple_of(ALIGN);
        Ok(())
    }

    /// Frees all that a context allocated.
    pub fn free_owned(&self, owner: u64) {
        let mut state = self.state.lock();
        let mut freed = 0;
        state.live.retain(|_, allocation| {
            let keep = allocation.owner != owner;
            freed += if keep { 0 } else { allocation.len.next_multiple_of(ALIGN) };
            keep
        });
        state.used -= freed;
    }

    /// The `len` bytes at `address`; none where they are not within one allocation.
    pub fn resolve(&self, address: u64, len: u64) -> Option<Span> {
        let state = self.state.lock();
        let (&start, allocation) = state.live.range(..=address).next_back()?;
        let offset = address - start;
        if offset.checked_add(len)? > allocation.len {
            return None;
        }
        // SAFETY: the offset lies within the backing or at its end.
        let host = unsafe { allocation.backing.bytes.add(offset as usize) };
        Some(Span { host, _backing: Arc::clone(&allocation.backing) })
    }

    /// First address and size of the allocation that `address` lies in.
    pub fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let state = self.state.lock();
        let (&start, allocation) = state.live.range(..=address).next_back()?;
        (address - start < allocation.len).then_some((start, allocation.len))
    }

    /// Whether `value` could be a device address at all.
    pub fn in_range(&self, value: u64) -> bool {
        (self.base..self.base + self.size).contains(&value)
    }
}

/// Reserves address space without access; where even that is refused, takes a range that no process uses.
fn reserve() -> (u64, u64) {
    for size in RANGES {
        // SAFETY: a fresh mapping without access, at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if at != libc::MAP_FAILED {
            return (at as u64, size);
        }
    }
    (0x0100_0000_0000_0000, RANGES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_allocation() {
        let memory = Memory::new(1 << 20);
        let at = memory.allocate(1000, 1).unwrap();
        assert!(memory.resolve(at, 1000).is_some() && memory.resolve(at + 999, 1).is_some());
        assert!(memory.resolve(at, 1001).is_none() && memory.resolve(at - 1, 1).is_none());
        assert_eq!(memory.containing(at + 10), Some((at, 1000)));
        memory.free(at).unwrap();
        assert!(memory.resolve(at, 1).is_none());
        assert_eq!(memory.free(at), Err(Code::INVALID_VALUE));
        assert_eq!(memory.free_bytes(), 1 << 20);
    }

    #[test]
    fn memory_runs_out_and_comes_back_with_its_context() {
        let memory = Memory::new(4096);
        memory.allocate(2048, 1).unwrap();
        memory.allocate(2048, 2).unwrap();
        assert_eq!(memory.allocate(1, 1), Err(Code::OUT_OF_MEMORY));
        memory.free_owned(1);
        assert_eq!(memory.free_bytes(), 2048);
        assert_eq!(memory.allocate(0, 1), Err(Code::INVALID_VALUE));
    }
}
