//! The modules that a thread keeps for the child's life.
//!
//! Their handles are written into memory that comes from the system in large pieces, between rounds: a `malloc` here would
//! be one more caller that trips over a heap that the driver broke, and would put the blame on us.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Handles in one piece: 1 MiB.
const PIECE: usize = 1 << 17;

/// Handles of kept modules.
pub(super) struct Kept {
    piece: Option<NonNull<*mut c_void>>,
    used: usize,
    count: u64,
}

impl Kept {
    /// Room for a first piece.
    pub fn new() -> Kept {
        Kept { piece: piece(), used: 0, count: 0 }
    }

    /// How many are kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Keeps one more. A handle for which the system has no memory is counted and forgotten: kept modules are never looked
    /// at again in the loop.
    #[inline]
    pub fn push(&mut self, handle: *mut c_void) {
        self.count += 1;
        if self.used == PIECE {
            self.grow();
        }
        if let Some(piece) = self.piece {
            // SAFETY: `used` is below the number of handles that the piece holds, and the piece is ours alone.
            unsafe { piece.add(self.used).write(handle) };
            self.used += 1;
        }
    }

    /// A fresh piece. The full one stays mapped for the life of the process: whoever reads a core finds the handles there.
    #[cold]
    fn grow(&mut self) {
        self.piece = piece();
        self.used = 0;
    }
}

fn piece() -> Option<NonNull<*mut c_void>> {
    let bytes = PIECE * size_of::<*mut c_void>();
    // SAFETY: fresh memory at an address of the kernel's choice.
    let memory = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    memory.ok().and_then(NonNull::new).map(NonNull::cast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_piece_is_kept() {
        let mut kept = Kept::new();
        let first = kept.piece;
        for handle in 0..=PIECE {
            kept.push(std::ptr::without_provenance_mut(handle));
        }
        assert_eq!((kept.count(), kept.used), (PIECE as u64 + 1, 1));
        assert_ne!(kept.piece, first);
        // SAFETY: written just now.
        assert_eq!(unsafe { kept.piece.unwrap().read() }.addr(), PIECE);
    }
}
