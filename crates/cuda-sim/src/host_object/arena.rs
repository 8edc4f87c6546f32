//! Places for host objects, one set of addresses for each kind of page.
//!
//! The kernel allows a process 65,530 mappings, and a program that keeps modules would use three for each. So pages of one
//! kind lie side by side in chunks, and the kernel keeps one mapping for many. Between two places stands a page that is
//! never given up: a place that is unmapped and mapped again is joined to it, whatever became of its neighbours.
//! A freed place is unmapped at once and used again only after many others, so that a late call into it meets nothing.
#![allow(unsafe_code)] // maps and unmaps memory

use crate::error::{Answer, Code};
use crate::lock::Lock;
use std::collections::{HashMap, VecDeque};
use std::sync::OnceLock;

/// A page, bytes.
const PAGE: usize = 4096;
/// Places in a chunk.
const CHUNK: usize = 64;
/// Freed places that must lie before the oldest is used again.
const PARKED: usize = 48;

/// A mapped place.
#[derive(Debug)]
pub struct Place {
    /// Its first byte.
    pub at: *mut u8,
    /// Its size, bytes: whole pages.
    pub len: usize,
}

/// What pages are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Code: read and execute.
    Text,
    /// Tables: read.
    Tables,
    /// Zero at first: read and write.
    Bss,
}

impl Kind {
    /// The protection of a finished place.
    fn protection(self) -> i32 {
        match self {
            Kind::Text => libc::PROT_READ | libc::PROT_EXEC,
            Kind::Tables => libc::PROT_READ,
            Kind::Bss => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// Places of one kind.
pub struct Arena {
    kind: Kind,
    by_size: Lock<HashMap<usize, Places>>,
}

/// Places of one size.
#[derive(Default)]
struct Places {
    /// Mapped and never used.
    fresh: Vec<usize>,
    /// Unmapped, oldest first.
    freed: VecDeque<usize>,
}

/// The places of a kind.
pub fn arena(kind: Kind) -> &'static Arena {
    static ARENAS: OnceLock<[Arena; 3]> = OnceLock::new();
    let arenas = ARENAS.get_or_init(|| {
        [Kind::Text, Kind::Tables, Kind::Bss].map(|kind| Arena { kind, by_size: Lock::new(HashMap::new()) })
    });
    &arenas[kind as usize]
}

impl Arena {
    /// Maps `len` bytes, rounded up to pages: zero, readable and writable.
    pub fn map(&self, len: usize) -> Answer<Place> {
        let len = len.max(1).next_multiple_of(PAGE);
        let mut by_size = self.by_size.lock();
        let places = by_size.entry(len).or_default();
        if places.freed.len() > PARKED
            && let Some(address) = places.freed.pop_front()
        {
            drop(by_size);
            return remap(address, len);
        }
        if places.fresh.is_empty() {
            places.fresh = self.chunk(len)?;
        }
        let at = places.fresh.pop().ok_or(Code::OUT_OF_MEMORY)? as *mut u8;
        drop(by_size);
        let place = Place { at, len };
        if self.kind != Kind::Bss {
            protect(&place, libc::PROT_READ | libc::PROT_WRITE)?;
        }
        Ok(place)
    }

    /// Gives a place that was filled its final protection.
    pub fn finish(&self, place: &Place) -> Answer {
        protect(place, self.kind.protection())
    }

    /// Unmaps a place.
    pub fn unmap(&self, place: &Place) {
        // SAFETY: the place was mapped by `map` and is given up by its owner.
        unsafe { libc::munmap(place.at.cast(), place.len) };
        self.by_size.lock().entry(place.len).or_default().freed.push_back(place.at as usize);
    }

    /// Maps a chunk of places for `len` bytes, each behind a page that stays; the places, last one first.
    fn chunk(&self, len: usize) -> Answer<Vec<usize>> {
        let stride = PAGE + len;
        let size = CHUNK * stride + PAGE;
        let at = map_at(std::ptr::null_mut(), size, 0).ok_or(Code::OUT_OF_MEMORY)?;
        // The first touch gives the chunk its identity in the kernel's books: without it, pieces that are mapped later
        // would each get one of their own and could not be joined.
        // SAFETY: just mapped.
        unsafe { at.write_volatile(0) };
        protect(&Place { at, len: size }, self.kind.protection())?;
        Ok((0..CHUNK).rev().map(|index| at as usize + index * stride + PAGE).collect())
    }
}

/// Maps a place that was unmapped; another one where something else has moved in meanwhile.
fn remap(address: usize, len: usize) -> Answer<Place> {
    let at = map_at(address as *mut u8, len, libc::MAP_FIXED_NOREPLACE)
        .or_else(|| map_at(std::ptr::null_mut(), len, 0))
        .ok_or(Code::OUT_OF_MEMORY)?;
    Ok(Place { at, len })
}

fn map_at(address: *mut u8, len: usize, flags: i32) -> Option<*mut u8> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping that replaces nothing: at an address of the kernel's choice, or with NOREPLACE.
    let at = unsafe { libc::mmap(address.cast(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

fn protect(place: &Place, protection: i32) -> Answer {
    // SAFETY: the place is mapped and ours.
    match unsafe { libc::mprotect(place.at.cast(), place.len, protection) } {
        0 => Ok(()),
        _ => Err(Code::OUT_OF_MEMORY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_distinct_writable_and_come_back_zero() {
        let arena = Arena { kind: Kind::Tables, by_size: Lock::new(HashMap::new()) };
        let mut seen = std::collections::HashSet::new();
        for _ in 0..3 * PARKED {
            let place = arena.map(5000).unwrap();
            assert_eq!(place.len, 2 * PAGE);
            // SAFETY: the place is mapped for reading and writing.
            unsafe {
                assert_eq!(place.at.add(4999).read(), 0);
                place.at.add(4999).write(1);
            }
            arena.finish(&place).unwrap();
            seen.insert(place.at as usize);
            arena.unmap(&place);
        }
        assert_eq!(seen.len(), PARKED + 1, "a place is used again once so many others were freed after it");
    }
}
