//! The header of Tile IR bytecode, as tileiras reads and cuda-tile writes it.

use crate::error::{ErrorKind, ImageError};
use crate::reader;

/// First bytes of Tile IR bytecode.
pub(crate) const MAGIC: &[u8] = b"\x7fTileIR\0";

/// Tile IR bytecode: what its header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileBytecode {
    /// Version of the bytecode: major, minor.
    pub version: (u8, u8),
    /// The word behind the version.
    pub tag: u16,
    /// Size of the whole, bytes.
    pub size: u64,
}

impl TileBytecode {
    /// Reads the header.
    pub fn parse(data: &[u8]) -> Result<TileBytecode, ImageError> {
        if !data.starts_with(MAGIC) {
            let kind = if data.is_empty() { ErrorKind::Empty } else { ErrorKind::WrongForm };
            let found = crate::ImageKind::detect(data).describe();
            return Err(ImageError::new(kind, 0, "Tile IR bytecode (7f 'TileIR' 00)", found));
        }
        let short = || {
            let found = format!("a file of {:#x} bytes", data.len());
            ImageError::truncated(MAGIC.len() as u64, "a version and a tag of 4 bytes", found)
        };
        let (major, minor) = (reader::u8_at(data, 8).ok_or_else(short)?, reader::u8_at(data, 9).ok_or_else(short)?);
        let tag = reader::u16_at(data, 10).ok_or_else(short)?;
        Ok(TileBytecode { version: (major, minor), tag, size: data.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_and_refuses_a_stump() {
        let header = TileBytecode::parse(b"\x7fTileIR\0\x0d\x04\0\0rest").unwrap();
        assert_eq!(header.version, (13, 4));
        assert_eq!(TileBytecode::parse(b"\x7fTileIR\0\x0d").unwrap_err().kind, ErrorKind::Truncated);
        assert_eq!(TileBytecode::parse(b"").unwrap_err().kind, ErrorKind::Empty);
    }
}
