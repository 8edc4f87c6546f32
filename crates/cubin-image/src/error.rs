//! What is wrong with an image, in one line.

use thiserror::Error;

/// Why an image was refused: tells a caller which exit code fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No bytes at all.
    Empty,
    /// Not one of the forms that were asked for.
    WrongForm,
    /// Ends before something that it announces.
    Truncated,
    /// A field contradicts the rest of the image.
    Malformed,
    /// Well formed, but of a kind that this reader or this machine cannot use.
    Unsupported,
}

/// An image that cannot be read: where, what was expected there, and what stood there instead.
///
/// Displays as one line without the image's path, which the caller knows:
/// `at offset 0x28: expected a section header table inside the file, found 0x1000..0x1400 in a file of 0x40 bytes`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at offset {offset:#x}: expected {expected}, found {found}")]
pub struct ImageError {
    /// Which family of errors it belongs to.
    pub kind: ErrorKind,
    /// File offset of the field or bytes in question.
    pub offset: u64,
    /// What should have stood there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

impl ImageError {
    pub(crate) fn new(
        kind: ErrorKind,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> ImageError {
        ImageError { kind, offset, expected: expected.into(), found: found.into() }
    }

    pub(crate) fn truncated(offset: u64, expected: impl Into<String>, found: impl Into<String>) -> ImageError {
        ImageError::new(ErrorKind::Truncated, offset, expected, found)
    }

    pub(crate) fn malformed(offset: u64, expected: impl Into<String>, found: impl Into<String>) -> ImageError {
        ImageError::new(ErrorKind::Malformed, offset, expected, found)
    }

    /// The same error for bytes that lie at `base` of a larger file.
    pub(crate) fn rebased(mut self, base: u64) -> ImageError {
        self.offset = self.offset.saturating_add(base);
        self
    }
}
