//! The child's stderr: read as it comes, its tail kept, so that a child that floods it neither blocks nor fills memory.

use rustix::pipe::PipeFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes read at most in one go, so that a flood leaves room for everything else.
const GO: usize = 1 << 20;

/// The reading end and the tail.
#[derive(Debug)]
pub struct Tail {
    pipe: Option<OwnedFd>,
    kept: VecDeque<u8>,
    limit: usize,
    total: u64,
    buffer: Box<[u8]>,
}

impl Tail {
    /// Keeps the last `limit` bytes. Also returns the end that the child writes to.
    pub fn new(limit: usize) -> io::Result<(Tail, OwnedFd)> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&read, true)?;
        // A larger pipe means fewer wake-ups under a flood; a refusal only costs those.
        let _ = rustix::pipe::fcntl_setpipe_size(&read, GO);
        let buffer = vec![0; 64 << 10].into_boxed_slice();
        Ok((Tail { pipe: Some(read), kept: VecDeque::new(), limit, total: 0, buffer }, write))
    }

    /// What to poll for reading; none after the last writer has gone.
    pub fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, without waiting.
    pub fn drain(&mut self) {
        let mut taken = 0;
        while let Some(pipe) = &self.pipe
            && taken < GO
        {
            match rustix::io::read(pipe, &mut *self.buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    taken += n;
                    self.keep(n);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn keep(&mut self, n: usize) {
        self.total += n as u64;
        let fresh = &self.buffer[n.saturating_sub(self.limit)..n];
        let over = (self.kept.len() + fresh.len()).saturating_sub(self.limit);
        self.kept.drain(..over);
        self.kept.extend(fresh);
    }

    /// Bytes that the child has written so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The tail as text; where bytes were dropped before it, it begins at a line.
    pub fn text(&self) -> String {
        let (a, b) = self.kept.as_slices();
        let text = String::from_utf8_lossy(&[a, b].concat()).into_owned();
        if self.total <= self.limit as u64 {
            return text;
        }
        match text.split_once('\n') {
            Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_whole_lines() {
        let (mut tail, write) = Tail::new(10).unwrap();
        rustix::io::write(&write, b"one\ntwo\nthree\n").unwrap();
        tail.drain();
        assert_eq!(tail.text(), "three\n");
        assert_eq!(tail.total(), 14);
        assert!(tail.poll_fd().is_some());
        drop(write);
        tail.drain();
        assert!(tail.poll_fd().is_none());
    }

    #[test]
    fn a_short_text_is_kept_whole_and_noise_is_no_harm() {
        let (mut tail, write) = Tail::new(100).unwrap();
        rustix::io::write(&write, b"a\xff\nb").unwrap();
        tail.drain();
        assert_eq!(tail.text(), "a\u{fffd}\nb");
    }
}
