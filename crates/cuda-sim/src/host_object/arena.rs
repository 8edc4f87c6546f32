//! Places for host objects, one run of addresses a kind of page.
//!
//! Pages of one kind lie side by side, so that the kernel keeps one mapping for many objects: it allows a process 65,530
//! mappings, and a program that keeps modules would use three each. A freed place is unmapped at once and used again only
//! after many others, so that a late call into it meets nothing.
#![allow(unsafe_code)] // maps and unmaps memory

use crate::error::{Answer, Code};
use crate::lock::Lock;
use std::collections::VecDeque;
use std::sync::OnceLock;

/// A page, bytes.
pub const PAGE: usize = 4096;
/// Size of the run of addresses that is looked for at the start, bytes.
const RUN: usize = 1 << 36;
/// Freed places that must lie before the oldest is used again.
const PARKED: usize = 256;

/// A mapped place.
#[derive(Debug)]
pub struct Place {
    /// Its first byte.
    pub at: *mut u8,
    /// Its size, bytes: whole pages.
    pub len: usize,
}

/// Addresses for one kind of page.
pub struct Arena {
    spare: Lock<Spare>,
}

#[derive(Default)]
struct Spare {
    next: usize,
    freed: VecDeque<(usize, usize)>,
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

/// The addresses for one kind of page.
pub fn arena(kind: Kind) -> &'static Arena {
    static ARENAS: OnceLock<[Arena; 3]> = OnceLock::new();
    &ARENAS.get_or_init(|| std::array::from_fn(|_| Arena { spare: Lock::new(Spare::default()) }))[kind as usize]
}

impl Arena {
    /// Maps `len` bytes, rounded up to pages, for reading and writing.
    pub fn map(&self, len: usize) -> Answer<Place> {
        let len = len.max(1).next_multiple_of(PAGE);
        for _ in 0..64 {
            let hint = self.choose(len);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: NOREPLACE refuses a place where anything is mapped.
            let at = unsafe { libc::mmap(hint as *mut _, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            if at as usize == hint {
                return Ok(Place { at: at.cast(), len });
            }
            if at != libc::MAP_FAILED {
                // A kernel older than 4.17 takes the address as a wish.
                return Ok(Place { at: at.cast(), len });
            }
            if std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM) {
                return Err(Code::OUT_OF_MEMORY);
            }
        }
        Err(Code::OUT_OF_MEMORY)
    }

    /// Unmaps a place.
    pub fn unmap(&self, place: &Place) {
        // SAFETY: the place was mapped by `map` and is given up by its owner.
        unsafe { libc::munmap(place.at.cast(), place.len) };
        self.spare.lock().freed.push_back((place.at as usize, place.len));
    }

    fn choose(&self, len: usize) -> usize {
        let mut spare = self.spare.lock();
        if spare.freed.len() > PARKED
            && let Some(at) = spare.freed.iter().take(8).position(|freed| freed.1 == len)
            && let Some((address, _)) = spare.freed.remove(at)
        {
            return address;
        }
        if spare.next == 0 {
            spare.next = find_run();
        }
        let address = spare.next;
        spare.next += len;
        address
    }
}

/// Finds a long run of free addresses by mapping and unmapping it.
fn find_run() -> usize {
    for size in [RUN, RUN >> 4, RUN >> 8] {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice, given back at once.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0);
            if at != libc::MAP_FAILED {
                libc::munmap(at, size);
                return at as usize;
            }
        }
    }
    0x6000_0000_0000
}

/// Gives a place its final protection.
pub fn protect(place: &Place, kind: Kind) -> Answer {
    let protection = match kind {
        Kind::Text => libc::PROT_READ | libc::PROT_EXEC,
        Kind::Tables => libc::PROT_READ,
        Kind::Bss => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: the place is mapped and ours.
    match unsafe { libc::mprotect(place.at.cast(), place.len, protection) } {
        0 => Ok(()),
        _ => Err(Code::OUT_OF_MEMORY),
    }
}
