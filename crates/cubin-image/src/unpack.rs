//! Unpacks entries of fat binaries. The size that an entry states is an upper bound to check against, never a reason to
//! allocate.

use crate::error::{ErrorKind, ImageError};
use crate::fatbin::{Compression, FatbinEntry};
use std::borrow::Cow;
use std::io::Read;

/// Largest image that is unpacked, bytes.
const LARGEST: u64 = 256 << 20;
/// One byte of an LZ4 block stands for 255 bytes at most.
const LZ4_RATIO: u64 = 255;

impl FatbinEntry {
    /// The image in the entry, unpacked where it is packed.
    ///
    /// # Errors
    /// When the payload does not unpack to the size that the entry states.
    pub fn unpack<'a>(&self, file: &'a [u8]) -> Result<Cow<'a, [u8]>, ImageError> {
        let packed = self.data(file);
        let refuse = |found: String| {
            let expected = format!("a payload that unpacks to {:#x} bytes", self.unpacked_size);
            ImageError::malformed(self.payload.start, expected, found)
        };
        if self.compression == Compression::None {
            return Ok(Cow::Borrowed(packed));
        }
        if self.unpacked_size > LARGEST {
            let (expected, found) =
                (format!("an image of at most {LARGEST:#x} bytes"), format!("{:#x}", self.unpacked_size));
            return Err(ImageError::new(ErrorKind::Unsupported, self.offset + 56, expected, found));
        }
        let bytes = match self.compression {
            Compression::Zstd => unzstd(packed, self.unpacked_size),
            _ => unlz4(packed, self.unpacked_size),
        };
        let bytes = bytes.map_err(refuse)?;
        if bytes.len() as u64 != self.unpacked_size {
            return Err(refuse(format!("{:#x} bytes", bytes.len())));
        }
        Ok(Cow::Owned(bytes))
    }
}

fn unzstd(packed: &[u8], size: u64) -> Result<Vec<u8>, String> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    decoder.take(size + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

fn unlz4(packed: &[u8], size: u64) -> Result<Vec<u8>, String> {
    if size > (packed.len() as u64).saturating_mul(LZ4_RATIO) {
        return Err(format!("{:#x} packed bytes, too few for that", packed.len()));
    }
    lz4_flex::block::decompress(packed, size as usize).map_err(|e| e.to_string())
}
