//! What the supervisor hands down: the gate, the order, the image, the journal, each through its own descriptor.

use super::image::Image;
use crate::cubin::bundle;
use crate::journal::{GATE_UNTRACED, JournalWriter};
use crate::plan::Order;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// The order, as JSON.
pub const ORDER: RawFd = 3;
/// The image's bytes.
pub const IMAGE: RawFd = 4;
/// The journal.
pub const JOURNAL: RawFd = 5;
/// Read end of a pipe: one byte lets the worker begin, its end (the supervisor is gone) ends it.
pub const GATE: RawFd = 6;

/// What came through the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// The supervisor is gone.
    Shut,
    /// Begin.
    Open,
    /// Begin, and write your own last words if it comes to that.
    Untraced,
}

/// Waits at the gate.
pub(super) fn pass_gate() -> io::Result<Gate> {
    // Should the supervisor die while ptrace does not see to it that this process goes too.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // SAFETY: by the contract with the supervisor the descriptor is ours; nobody else in this process uses it.
    let mut gate = unsafe { open(GATE) }?;
    let mut byte = [0];
    let read = gate.read(&mut byte)?;
    Ok(match read {
        // The supervisor holds its end for as long as it lives. It may have gone between its byte and the line above that
        // ties this process to it, and then nothing else would end this process.
        _ if read == 0 || is_hung_up(&gate)? => Gate::Shut,
        _ if byte[0] == GATE_UNTRACED => Gate::Untraced,
        _ => Gate::Open,
    })
}

/// Whether nobody holds the other end of a pipe any more.
fn is_hung_up(pipe: &File) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut ends = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut ends, Some(&Timespec::default()))?;
    Ok(ends[0].revents().contains(PollFlags::HUP))
}

/// Reads the order.
pub(super) fn order() -> io::Result<Order> {
    serde_json::from_slice(&all(ORDER)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the image, or the images of a bundle. The inner error is one line: they are no bytes that a driver could load.
pub(super) fn images(order: &Order) -> io::Result<Result<Vec<Image>, String>> {
    let bytes = all(IMAGE)?;
    let Some(bundled) = bundle::unpack(&bytes) else {
        return Ok(Image::read(bytes, &order.image_path).map(|image| vec![image]));
    };
    Ok(bundled.into_iter().map(|(name, image)| Image::read(image.to_vec(), name.as_ref())).collect())
}

/// Maps the journal.
pub(super) fn journal() -> io::Result<JournalWriter> {
    // SAFETY: by the contract with the supervisor the descriptor is open; a closed one is an error of `fstat`.
    JournalWriter::attach(unsafe { BorrowedFd::borrow_raw(JOURNAL) })
}

/// Every byte of a sealed file, whatever its offset is.
fn all(fd: RawFd) -> io::Result<Vec<u8>> {
    // SAFETY: by the contract with the supervisor the descriptor is ours; nobody else in this process uses it.
    let file = unsafe { open(fd) }?;
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Takes a descriptor that this process was started with.
///
/// # Safety
/// Nobody else in the process may own it.
unsafe fn open(fd: RawFd) -> io::Result<File> {
    // SAFETY: only asked whether it is open.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) })?;
    // SAFETY: it is open, and by this function's contract nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}
