//! Handles, of two kinds.
//!
//! [`Table`]: modules, functions, libraries and kernels. A handle is a kind, a generation and an index, so that a stale one
//! is known as stale whatever became of its slot. [`Pool`]: contexts, streams and events. A handle is the address of a small
//! block that a C library would free: it is overwritten and parked, so that a stale one is dereferenced and faults.
#![allow(unsafe_code)] // handles are what C programs hand back to us

use crate::lock::Lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const CHUNK: usize = 1024;
const CHUNKS: usize = 8192;
/// Freed slots that must lie before the oldest is used again.
const PARKED: usize = 128;

struct Slot<T> {
    generation: AtomicU32,
    body: AtomicPtr<T>,
}

/// Values behind generation-counted handles. Look-up takes no lock.
pub struct Table<T> {
    kind: u8,
    chunks: Box<[AtomicPtr<Slot<T>>]>,
    spare: Lock<Spare>,
}

struct Spare {
    next: u32,
    freed: VecDeque<u32>,
}

impl<T> Table<T> {
    /// An empty table whose handles begin with `kind`.
    pub fn new(kind: u8) -> Self {
        let chunks = (0..CHUNKS).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        Table { kind, chunks, spare: Lock::new(Spare { next: 0, freed: VecDeque::new() }) }
    }

    /// Puts a value in; none where the table is full.
    pub fn insert(&self, value: Box<T>) -> Option<u64> {
        let index = self.take_index()?;
        let slot = self.slot(index)?;
        slot.body.store(Box::into_raw(value), Ordering::Release);
        let generation = slot.generation.load(Ordering::Acquire) & 0x00ff_ffff;
        Some(u64::from(self.kind) << 56 | u64::from(generation) << 32 | u64::from(index + 1))
    }

    /// The value of a live handle; none for a stale or foreign one.
    ///
    /// # Safety
    /// The value must not be removed while the reference is used. A program that uses a handle while another thread removes
    /// it breaks this, here as in any C library.
    pub unsafe fn get(&self, handle: u64) -> Option<&T> {
        let (slot, generation) = self.find(handle)?;
        let body = slot.body.load(Ordering::Acquire);
        if slot.generation.load(Ordering::Acquire) & 0x00ff_ffff != generation || body.is_null() {
            return None;
        }
        // SAFETY: the body is live, and the caller keeps it so.
        Some(unsafe { &*body })
    }

    /// Takes a value out; its handle is stale from now on.
    pub fn remove(&self, handle: u64) -> Option<Box<T>> {
        let (slot, generation) = self.find(handle)?;
        let full = slot.generation.load(Ordering::Acquire);
        if full & 0x00ff_ffff != generation {
            return None;
        }
        slot.generation.compare_exchange(full, full.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let body = slot.body.swap(std::ptr::null_mut(), Ordering::AcqRel);
        self.spare.lock().freed.push_back((handle as u32) - 1);
        // SAFETY: the exchange made this thread the only owner of the body.
        (!body.is_null()).then(|| unsafe { Box::from_raw(body) })
    }

    fn find(&self, handle: u64) -> Option<(&Slot<T>, u32)> {
        let index = (handle as u32).checked_sub(1)?;
        if (handle >> 56) as u8 != self.kind || index as usize >= CHUNK * CHUNKS {
            return None;
        }
        let chunk = self.chunks[index as usize / CHUNK].load(Ordering::Acquire);
        // SAFETY: a published chunk has CHUNK slots and is never freed.
        (!chunk.is_null())
            .then(|| (unsafe { &*chunk.add(index as usize % CHUNK) }, (handle >> 32) as u32 & 0x00ff_ffff))
    }

    fn take_index(&self) -> Option<u32> {
        let mut spare = self.spare.lock();
        if spare.freed.len() > PARKED {
            return spare.freed.pop_front();
        }
        let index = spare.next;
        if index as usize >= CHUNK * CHUNKS {
            return spare.freed.pop_front();
        }
        if (index as usize).is_multiple_of(CHUNK) {
            let chunk: Box<[Slot<T>]> = (0..CHUNK)
                .map(|_| Slot { generation: AtomicU32::new(1), body: AtomicPtr::new(std::ptr::null_mut()) })
                .collect();
            self.chunks[index as usize / CHUNK].store(Box::leak(chunk).as_mut_ptr(), Ordering::Release);
        }
        spare.next += 1;
        Some(index)
    }

    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let chunk = self.chunks[index as usize / CHUNK].load(Ordering::Acquire);
        // SAFETY: as in `find`.
        (!chunk.is_null()).then(|| unsafe { &*chunk.add(index as usize % CHUNK) })
    }
}

/// What freed blocks are overwritten with.
const POISON: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// The block behind a pooled handle.
#[repr(C)]
pub struct Block<T> {
    body: *const T,
    rest: [u64; 7],
}

/// Values behind handles that are plain addresses and are not checked.
pub struct Pool<T> {
    parked: Lock<VecDeque<usize>>,
    body: std::marker::PhantomData<fn() -> T>,
}

impl<T> Pool<T> {
    /// An empty pool.
    pub fn new() -> Self {
        Pool { parked: Lock::new(VecDeque::new()), body: std::marker::PhantomData }
    }

    /// Makes a handle for a value, which the pool holds one reference to.
    pub fn insert(&self, value: std::sync::Arc<T>) -> u64 {
        let body = std::sync::Arc::into_raw(value);
        let mut parked = self.parked.lock();
        let block = if parked.len() > PARKED { parked.pop_front() } else { None };
        drop(parked);
        let block = block
            .map_or_else(|| Box::into_raw(Box::new(Block { body, rest: [0; 7] })), |address| address as *mut Block<T>);
        // SAFETY: the block is fresh, or parked and in no one's hands.
        unsafe { block.write(Block { body, rest: [0; 7] }) };
        block as u64
    }

    /// One more reference to the value of a handle.
    ///
    /// # Safety
    /// The handle must be live. A stale one is dereferenced all the same and faults here, in the driver's own code.
    pub unsafe fn get(&self, handle: u64) -> std::sync::Arc<T> {
        // SAFETY: the caller vouches for the handle; volatile, so that the loads stay here.
        unsafe {
            let body = (&raw const (*(handle as *const Block<T>)).body).read_volatile();
            std::sync::Arc::increment_strong_count(body);
            std::sync::Arc::from_raw(body)
        }
    }

    /// Ends a handle and gives the pool's reference back.
    ///
    /// # Safety
    /// As for [`Pool::get`].
    pub unsafe fn remove(&self, handle: u64) -> std::sync::Arc<T> {
        // SAFETY: the caller vouches for the handle, so the block is ours to overwrite.
        let value = unsafe {
            let block = handle as *mut Block<T>;
            let body = (&raw const (*block).body).read_volatile();
            // A first look at the value: a stale handle must fault before anything is overwritten.
            std::sync::Arc::increment_strong_count(body);
            std::sync::Arc::decrement_strong_count(body);
            (block as *mut [u64; 8]).write_volatile([POISON; 8]);
            std::sync::Arc::from_raw(body)
        };
        self.parked.lock().push_back(handle as usize);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_removed_handle_is_stale_even_when_its_slot_is_used_again() {
        let table = Table::new(7);
        let first = table.insert(Box::new(1)).unwrap();
        // SAFETY: this thread alone uses the table.
        assert_eq!(unsafe { table.get(first) }, Some(&1));
        assert_eq!(table.remove(first).as_deref(), Some(&1));
        assert!(table.remove(first).is_none());
        for n in 0..1000 {
            let handle = table.insert(Box::new(n)).unwrap();
            assert_ne!(handle, first);
            // SAFETY: as above.
            assert_eq!(unsafe { table.get(first) }, None);
            table.remove(handle);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { table.get(first ^ 1 << 60) }, None, "another kind of handle");
    }

    #[test]
    fn a_pooled_value_lives_as_long_as_someone_holds_it() {
        let pool = Pool::new();
        let handle = pool.insert(Arc::new(5));
        // SAFETY: the handle is live until it is removed.
        let (held, removed) = unsafe { (pool.get(handle), pool.remove(handle)) };
        assert_eq!((*held, Arc::strong_count(&removed)), (5, 2));
        // SAFETY: parked blocks stay allocated.
        assert_eq!(unsafe { (handle as *const u64).read() }, POISON);
    }
}
