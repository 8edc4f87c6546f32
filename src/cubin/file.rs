//! Opening what a user named: it may be anything, and must neither hang nor fill the memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Largest image that is read, bytes.
const LARGEST: u64 = 256 << 20;

/// Why a file could not be read as an image.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened or read.
    #[error("{}: expected a readable file: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder, a device, a pipe or a socket.
    #[error("{}: at offset 0x0: expected a regular file, found {what}", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Larger than any image.
    #[error("{}: at offset 0x0: expected an image of at most {LARGEST} bytes, found a file of {bytes}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
}

impl FileError {
    /// The error without the file's name.
    pub fn reason(&self) -> String {
        let (FileError::Io { path, .. } | FileError::NotAFile { path, .. } | FileError::TooLarge { path, .. }) = self;
        let whole = self.to_string();
        whole.strip_prefix(&format!("{}: ", path.display())).map(str::to_owned).unwrap_or(whole)
    }
}

/// Reads a regular file of bounded size.
///
/// # Errors
/// When it is not one, or cannot be read. Never blocks on a pipe or a device.
pub fn read_file(path: &Path) -> Result<Vec<u8>, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let file =
        File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).map_err(io_error)?;
    let meta = file.metadata().map_err(io_error)?;
    if !meta.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned(), what: kind(&meta) });
    }
    if meta.len() > LARGEST {
        return Err(FileError::TooLarge { path: path.to_owned(), bytes: meta.len() });
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    // A file that grows meanwhile is cut at the size that it had.
    file.take(meta.len()).read_to_end(&mut bytes).map_err(io_error)?;
    Ok(bytes)
}

fn kind(meta: &std::fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () if kind.is_socket() => "a socket",
        () => "something else",
    }
}
