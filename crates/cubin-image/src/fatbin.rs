//! Fat binaries: containers of images for several architectures, as files and inside ELF files.
//!
//! A container is `u32 magic, u16 version, u16 header size, u64 size of the entries`; an entry is a header of at least 64
//! bytes followed by its payload. Layout checked against what nvcc 13 writes.

use crate::error::{ErrorKind, ImageError};
use crate::reader;
use std::collections::HashSet;
use std::ops::Range;

/// First word of a container.
pub(crate) const MAGIC: u32 = 0xba55_ed50;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatbinKind {
    /// PTX text (1).
    Ptx,
    /// A cubin (2).
    Cubin,
    /// Tile IR bytecode (128).
    TileBytecode,
    /// Any other number.
    Other(u16),
}

impl FatbinKind {
    /// What to call it in a message.
    pub fn describe(self) -> String {
        match self {
            FatbinKind::Ptx => "PTX text".into(),
            FatbinKind::Cubin => "cubin".into(),
            FatbinKind::TileBytecode => "Tile IR bytecode".into(),
            FatbinKind::Other(number) => format!("kind {number}"),
        }
    }
}

/// How an entry's payload is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// One LZ4 block.
    Lz4,
    /// A Zstandard frame.
    Zstd,
}

/// One image in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatbinEntry {
    /// What it holds.
    pub kind: FatbinKind,
    /// Architecture number, such as 120.
    pub arch: u32,
    /// Flags as they stand in the header.
    pub flags: u64,
    /// How the payload is packed.
    pub compression: Compression,
    /// The payload's file range.
    pub payload: Range<u64>,
    /// Its size once unpacked, bytes, as the header states it: unchecked.
    pub unpacked_size: u64,
    /// File offset of the entry's header.
    pub offset: u64,
}

impl FatbinEntry {
    /// The payload as it stands in the file: packed where [`FatbinEntry::compression`] says so.
    pub fn data<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        reader::range(file, self.payload.start, self.payload.end - self.payload.start).unwrap_or(&[])
    }
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatbin {
    /// Its version: 1.
    pub version: u16,
    /// Its file range.
    pub range: Range<u64>,
    /// Its images in order.
    pub entries: Vec<FatbinEntry>,
}

impl Fatbin {
    /// Reads a file that is a container.
    pub fn parse(data: &[u8]) -> Result<Fatbin, ImageError> {
        Fatbin::parse_at(data, 0)
    }

    /// Reads the container at `offset` of a file.
    pub fn parse_at(data: &[u8], offset: u64) -> Result<Fatbin, ImageError> {
        Fatbin::parse_within(data, offset, &mut data.len().clone())
    }

    fn parse_within(data: &[u8], offset: u64, budget: &mut usize) -> Result<Fatbin, ImageError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let word = reader::u32_at(data, start);
        if word != Some(MAGIC) {
            let found = word.map_or("the end of the file".into(), |w| format!("{w:#010x}"));
            let kind = if data.is_empty() { ErrorKind::Empty } else { ErrorKind::WrongForm };
            return Err(ImageError::new(kind, offset, "a fat binary (magic 0xba55ed50)", found));
        }
        let short = || ImageError::truncated(offset, "a fat binary header of 16 bytes", "the end of the file");
        let version = reader::u16_at(data, start + 4).ok_or_else(short)?;
        let header = u64::from(reader::u16_at(data, start + 6).ok_or_else(short)?);
        let size = reader::u64_at(data, start + 8).ok_or_else(short)?;
        let end = offset.saturating_add(header).saturating_add(size);
        if header < 16 || end > data.len() as u64 {
            let found = format!("{header:#x} + {size:#x} bytes in a file of {:#x} bytes", data.len());
            return Err(ImageError::truncated(offset + 6, "a fat binary that ends inside the file", found));
        }
        let mut entries = Vec::new();
        let mut at = offset + header;
        while at < end {
            let entry = read_entry(&data[..end as usize], at)?;
            *budget = budget.checked_sub(64).ok_or_else(|| {
                ImageError::malformed(at, "entries that fit into the file", "containers that overlap")
            })?;
            at = entry.payload.end.max(at + entry.padded);
            entries.push(entry.entry);
        }
        Ok(Fatbin { version, range: offset..end, entries })
    }
}

struct ReadEntry {
    entry: FatbinEntry,
    payload: Range<u64>,
    padded: u64,
}

fn read_entry(data: &[u8], at: u64) -> Result<ReadEntry, ImageError> {
    let start = at as usize;
    let (u16_at, u32_at) = (|o: usize| reader::u16_at(data, start + o), |o: usize| reader::u32_at(data, start + o));
    let u64_at = |o: usize| reader::u64_at(data, start + o);
    let whole = (u16_at(0), u32_at(4), u64_at(8), u32_at(16), u32_at(28), u64_at(40), u64_at(56));
    let (Some(kind), Some(header), Some(padded), Some(packed), Some(arch), Some(flags), Some(unpacked_size)) = whole
    else {
        return Err(ImageError::truncated(at, "an entry header of 64 bytes", "the end of the fat binary"));
    };
    let compression = match flags {
        f if f & 0x8000 != 0 => Compression::Zstd,
        f if f & 0x2000 != 0 => Compression::Lz4,
        _ => Compression::None,
    };
    let size = if compression == Compression::None || packed == 0 { padded } else { u64::from(packed) };
    let begin = at + u64::from(header);
    let end = begin.saturating_add(padded);
    if header < 64 || size > padded || end > data.len() as u64 {
        let found = format!("{header:#x} + {padded:#x} bytes (packed {packed:#x}) before the end at {:#x}", data.len());
        return Err(ImageError::truncated(at + 4, "an entry that ends inside the fat binary", found));
    }
    let kind = match kind {
        1 => FatbinKind::Ptx,
        2 => FatbinKind::Cubin,
        128 => FatbinKind::TileBytecode,
        other => FatbinKind::Other(other),
    };
    let entry = FatbinEntry { kind, arch, flags, compression, payload: begin..begin + size, unpacked_size, offset: at };
    Ok(ReadEntry { entry, payload: begin..end, padded: u64::from(header).saturating_add(padded) })
}

/// Containers inside an ELF file of a host machine, with the name of the section that holds each.
///
/// Reads `.nv_fatbin`, `__nv_relfatbin`, `.nvFatBinSegmentAlt` and every other section whose name says that it holds fat
/// binaries; a container that does not parse is skipped, as wrappers of the same names hold pointers only.
pub fn embedded_fatbins(data: &[u8]) -> Result<Vec<(String, Fatbin)>, ImageError> {
    let elf = crate::elf::Elf::parse(data)?;
    let mut found: Vec<(String, Fatbin)> = Vec::new();
    let mut seen = HashSet::new();
    // Sections and containers may overlap in a hostile file: looking at all of it a few times is enough.
    let mut budget = data.len().saturating_mul(4);
    let may_hold = |s: &&crate::elf::Section| s.in_file() && s.name.to_ascii_lowercase().contains("fatbin");
    for section in elf.sections.iter().filter(may_hold) {
        let end = section.offset.saturating_add(section.data(data).len() as u64);
        let mut at = section.offset.next_multiple_of(8);
        while at < end && budget >= 8 {
            budget -= 8;
            let is_magic = reader::u32_at(data, at as usize) == Some(MAGIC);
            if !is_magic || !seen.insert(at) {
                at += 8;
                continue;
            }
            match Fatbin::parse_within(data, at, &mut budget) {
                Ok(fatbin) => {
                    at = fatbin.range.end.next_multiple_of(8);
                    found.push((section.name.clone(), fatbin));
                }
                Err(_) => at += 8,
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Vec<u8> {
        let mut entry = vec![0u8; 64];
        entry[0] = 1;
        entry[4] = 64;
        entry[8] = 8;
        entry[28] = 90;
        entry.extend_from_slice(b".version");
        let mut data = MAGIC.to_le_bytes().to_vec();
        data.extend_from_slice(&[1, 0, 16, 0]);
        data.extend_from_slice(&(entry.len() as u64).to_le_bytes());
        data.extend_from_slice(&entry);
        data
    }

    #[test]
    fn reads_an_entry() {
        let data = container();
        let fatbin = Fatbin::parse(&data).unwrap();
        let entry = &fatbin.entries[0];
        assert_eq!((entry.kind, entry.arch, entry.compression), (FatbinKind::Ptx, 90, Compression::None));
        assert_eq!(entry.data(&data), b".version");
    }

    #[test]
    fn a_lying_entry_size_is_an_error_at_its_place() {
        let mut data = container();
        data[16 + 15] = 0xff;
        let error = Fatbin::parse(&data).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Truncated, 20));
    }
}
