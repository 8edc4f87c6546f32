//! What a file is, from its first bytes.

use crate::{reader, tile_bytecode};

/// ELF's machine number for CUDA.
pub(crate) const EM_CUDA: u16 = 190;

/// The form of an image, told by its first bytes alone; the rest may still be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// A CUDA ELF (machine 190).
    Cubin,
    /// A fat binary container.
    Fatbin,
    /// PTX text.
    Ptx,
    /// Tile IR bytecode.
    TileBytecode,
    /// An ELF of another machine: an executable, library or object that may hold fat binaries.
    ElfExecutableOrObject,
    /// A gzip file.
    Gzip,
    /// No bytes.
    Empty,
    /// None of these.
    Unknown,
}

impl ImageKind {
    /// Looks at the first bytes (for text, at the first 4 KiB past comments).
    pub fn detect(data: &[u8]) -> ImageKind {
        if data.is_empty() {
            return ImageKind::Empty;
        }
        if data.starts_with(b"\x7fELF") {
            return match reader::u16_at(data, 18) {
                Some(EM_CUDA) => ImageKind::Cubin,
                Some(_) => ImageKind::ElfExecutableOrObject,
                // Too short to name its machine: whatever reads it will say so.
                None => ImageKind::Cubin,
            };
        }
        if data.starts_with(&crate::fatbin::MAGIC.to_le_bytes()) {
            return ImageKind::Fatbin;
        }
        if data.starts_with(tile_bytecode::MAGIC) {
            return ImageKind::TileBytecode;
        }
        if data.starts_with(&[0x1f, 0x8b]) {
            return ImageKind::Gzip;
        }
        if crate::ptx::looks_like_ptx(data) { ImageKind::Ptx } else { ImageKind::Unknown }
    }

    /// What to call it in a message.
    pub const fn describe(self) -> &'static str {
        match self {
            ImageKind::Cubin => "a cubin",
            ImageKind::Fatbin => "a fat binary",
            ImageKind::Ptx => "PTX text",
            ImageKind::TileBytecode => "Tile IR bytecode",
            ImageKind::ElfExecutableOrObject => "an ELF file of a host machine",
            ImageKind::Gzip => "a gzip file (unpack it first)",
            ImageKind::Empty => "an empty file",
            ImageKind::Unknown => "bytes of no known image form",
        }
    }
}
