//! Measures what the journal's recording costs: switches it on and off in blocks of rounds, and times each block. Used by
//! `benches/recorder.rs` and by nothing else.

use crate::journal::ThreadWriter;
use std::time::Instant;

/// Most blocks that are timed.
const MOST: usize = 1 << 16;

/// One thread's blocks.
pub(super) struct Pace {
    length: u32,
    left: u32,
    recording: bool,
    since: Instant,
    /// Length of each block, ns; on, off, on, off ...
    blocks: Vec<u64>,
}

impl Pace {
    /// Blocks of this many rounds, the first of them recorded.
    pub fn new(length: u32) -> Pace {
        let length = length.max(1);
        Pace { length, left: length, recording: true, since: Instant::now(), blocks: Vec::with_capacity(MOST) }
    }

    /// One round is done.
    #[inline]
    pub fn round(&mut self, pen: &mut ThreadWriter) {
        self.left -= 1;
        if self.left == 0 {
            self.turn(pen);
        }
    }

    #[cold]
    fn turn(&mut self, pen: &mut ThreadWriter) {
        if self.blocks.len() < MOST {
            self.blocks.push(u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        self.recording = !self.recording;
        pen.set_recording(self.recording);
        self.left = self.length;
        self.since = Instant::now();
    }

    /// Prints the blocks to stderr, one line each: `on 1234567`.
    pub fn print(&self) {
        for (index, ns) in self.blocks.iter().enumerate() {
            eprintln!("{} {ns}", if index % 2 == 0 { "on" } else { "off" });
        }
    }
}
