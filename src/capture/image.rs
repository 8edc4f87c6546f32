//! What unwinding and naming need of one ELF file: build id, segments, call frame information, symbols.
//!
//! From the file where it is there, else from the memory that it was mapped to. All bytes are hostile: anything that makes
//! no sense is absent. Addresses are the file's own; the process adds a bias.

use super::memory::{Memory, PAGE};
use super::symbols::Symbols;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection};
use object::LittleEndian as Le;
use object::elf;
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use std::path::Path;
use std::sync::OnceLock;

/// Largest section that is read, bytes.
const MOST: u64 = 256 << 20;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// A loadable part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address in the file's own terms.
    pub address: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Size in the file, bytes.
    pub file_size: u64,
    /// Size in memory, bytes.
    pub memory_size: u64,
    /// Executable.
    pub execute: bool,
}

/// Bytes and the address that they are mapped to.
#[derive(Debug, Default)]
struct Section {
    address: u64,
    bytes: Vec<u8>,
}

/// One ELF file, as far as capture needs it.
#[derive(Debug, Default)]
pub struct Image {
    /// GNU build id, hex.
    pub build_id: Option<String>,
    /// Loadable parts.
    pub segments: Vec<Segment>,
    hdr: Option<Section>,
    eh_frame: Option<Section>,
    symbols: OnceLock<Symbols>,
}

impl Image {
    /// Reads a file that is open.
    pub fn from_file<'a>(data: impl ReadRef<'a>) -> Option<Image> {
        let header = elf::FileHeader64::<Le>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let mut image = Image::default();
        for segment in header.program_headers(endian, data).ok()? {
            image.add_segment(segment, |offset, size| data.read_bytes_at(offset, size).ok().map(<[u8]>::to_vec));
        }
        let section = header.sections(endian, data).ok().and_then(|sections| {
            let (_, section) = sections.section_by_name(endian, b".eh_frame")?;
            let bytes = section.data(endian, data).ok().filter(|bytes| bytes.len() as u64 <= MOST)?;
            Some(Section { address: section.sh_addr(endian), bytes: bytes.to_vec() })
        });
        image.eh_frame = section.or(image.eh_frame);
        if image.eh_frame.is_none() {
            image.find_eh_frame(|segment, address| {
                let skip = address - segment.address;
                let size = segment.file_size.checked_sub(skip).filter(|&size| size <= MOST)?;
                data.read_bytes_at(segment.offset.checked_add(skip)?, size).ok().map(<[u8]>::to_vec)
            });
        }
        Some(image)
    }

    /// Reads a file that is gone (deleted, a memfd, the vdso) from where it is mapped with `bias`, or at its start.
    pub fn from_memory(memory: &Memory, start: u64) -> Option<Image> {
        let head = memory.bytes(start, PAGE as usize);
        let data = head.as_slice();
        let header = elf::FileHeader64::<Le>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let mut image = Image::default();
        let headers = header.program_headers(endian, data).ok()?;
        let first = headers.iter().find(|segment| segment.p_type(endian) == elf::PT_LOAD)?;
        let bias = start.wrapping_sub(first.p_vaddr(endian).wrapping_sub(first.p_offset(endian)));
        let to_address = |headers: &[elf::ProgramHeader64<Le>], offset: u64| {
            let inside = |s: &&elf::ProgramHeader64<Le>| {
                let skip = offset.checked_sub(s.p_offset(endian));
                s.p_type(endian) == elf::PT_LOAD && skip.is_some_and(|skip| skip < s.p_filesz(endian))
            };
            headers.iter().find(inside).map(|s| s.p_vaddr(endian).wrapping_add(offset - s.p_offset(endian)))
        };
        for segment in headers {
            image.add_segment(segment, |offset, size| {
                let address = to_address(headers, offset)?.wrapping_add(bias);
                Some(memory.bytes(address, size.min(16 << 20) as usize))
            });
        }
        image.find_eh_frame(|segment, address| {
            let size = segment.memory_size.checked_sub(address - segment.address)?.min(64 << 20);
            Some(memory.bytes(address.wrapping_add(bias), size as usize))
        });
        Some(image)
    }

    /// One whose call frame information was made elsewhere, with its own addresses.
    pub fn from_parts(segments: Vec<Segment>, eh_frame: (u64, Vec<u8>), symbols: Symbols) -> Image {
        let (address, bytes) = eh_frame;
        let eh_frame = Some(Section { address, bytes });
        Image { build_id: None, segments, hdr: None, eh_frame, symbols: OnceLock::from(symbols) }
    }

    fn add_segment(&mut self, header: &elf::ProgramHeader64<Le>, read: impl Fn(u64, u64) -> Option<Vec<u8>>) {
        let endian = Le;
        let (offset, size) = (header.p_offset(endian), header.p_filesz(endian));
        match header.p_type(endian) {
            elf::PT_LOAD => self.segments.push(Segment {
                address: header.p_vaddr(endian),
                offset,
                file_size: size,
                memory_size: header.p_memsz(endian),
                execute: header.p_flags(endian).0 & elf::PF_X.0 != 0,
            }),
            elf::PT_NOTE if self.build_id.is_none() && size <= 1 << 16 => {
                self.build_id = read(offset, size).and_then(|notes| build_id(&notes));
            }
            elf::PT_GNU_EH_FRAME if size <= MOST => {
                self.hdr = read(offset, size).map(|bytes| Section { address: header.p_vaddr(endian), bytes });
            }
            _ => {}
        }
    }

    /// Finds `.eh_frame` through the header that points to it; its end is that of its segment.
    fn find_eh_frame(&mut self, read: impl Fn(&Segment, u64) -> Option<Vec<u8>>) {
        let Some(hdr) = &self.hdr else { return };
        let bases = BaseAddresses::default().set_eh_frame_hdr(hdr.address);
        let Ok(parsed) = EhFrameHdr::new(&hdr.bytes, LittleEndian).parse(&bases, 8) else { return };
        let address = parsed.eh_frame_ptr().pointer();
        let inside = |s: &&Segment| address.checked_sub(s.address).is_some_and(|skip| skip < s.memory_size);
        let Some(segment) = self.segments.iter().find(inside) else { return };
        self.eh_frame = read(segment, address).map(|bytes| Section { address, bytes });
    }

    /// Start of the function that covers an address, by the call frame information.
    pub fn function(&self, address: u64) -> Option<u64> {
        self.with_fde(address, |fde, _, _| fde.initial_address())
    }

    /// Calls `then` with the entry that covers an address.
    pub fn with_fde<T>(
        &self,
        address: u64,
        then: impl FnOnce(&gimli::FrameDescriptionEntry<Reader<'_>>, &EhFrame<Reader<'_>>, &BaseAddresses) -> T,
    ) -> Option<T> {
        let section = self.eh_frame.as_ref()?;
        let mut bases = BaseAddresses::default().set_eh_frame(section.address);
        let mut frames = EhFrame::new(&section.bytes, LittleEndian);
        frames.set_address_size(8);
        if let Some(hdr) = &self.hdr {
            bases = bases.set_eh_frame_hdr(hdr.address);
            let parsed = EhFrameHdr::new(&hdr.bytes, LittleEndian).parse(&bases, 8);
            if let Ok(parsed) = &parsed
                && let Some(table) = parsed.table()
            {
                // Not the table's own `fde_for_address`: that subtracts without looking whether the pointer lies in the section.
                let pointer = table.lookup(address, &bases).ok()?.pointer();
                let offset = usize::try_from(pointer.checked_sub(section.address)?).ok()?;
                let fde = frames.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset).ok()?;
                return fde.contains(address).then(|| then(&fde, &frames, &bases));
            }
        }
        let fde = frames.fde_for_address(&bases, address, EhFrame::cie_from_offset).ok()?;
        Some(then(&fde, &frames, &bases))
    }

    /// The name of the function at an address: from the file's symbols, which are read when first asked for.
    pub fn symbol(&self, address: u64, function: Option<u64>, file: Option<&Path>) -> Option<String> {
        let symbols = self.symbols.get_or_init(|| file.and_then(Symbols::from_file).unwrap_or_default());
        symbols.name(address, function)
    }

    /// The bias of a mapping of this file that begins at `start` with the file's `offset`.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let page = |value: u64| value & !(PAGE - 1);
        let fits = |s: &&Segment| page(s.offset) <= offset && offset < s.offset.saturating_add(s.file_size);
        let segment = self.segments.iter().rev().find(|s| fits(s) && s.execute).or(self.segments.iter().find(fits))?;
        Some(start.wrapping_sub(page(segment.address).wrapping_add(offset - page(segment.offset))))
    }
}

/// The GNU build id in a note segment.
pub fn build_id(notes: &[u8]) -> Option<String> {
    let mut rest = notes;
    while rest.len() >= 12 {
        let word = |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]) as usize;
        let (name_size, size, kind) = (word(0), word(4), word(8));
        let name_end = 12usize.checked_add(name_size)?;
        let start = name_end.checked_next_multiple_of(4)?;
        let end = start.checked_add(size)?;
        let bytes = rest.get(start..end)?;
        if kind == elf::NT_GNU_BUILD_ID.0 as usize && rest.get(12..name_end)? == b"GNU\0" {
            return (!bytes.is_empty()).then(|| hex(bytes));
        }
        rest = rest.get(end.checked_next_multiple_of(4)?..)?;
    }
    None
}

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for (kind, desc) in [(5u32, &[1u8, 2][..]), (3, &[0xab, 0xcd, 0xef, 1][..])] {
            notes.extend([4u32, desc.len() as u32, kind].iter().flat_map(|word| word.to_le_bytes()));
            notes.extend(b"GNU\0");
            notes.extend(desc);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes).as_deref(), Some("abcdef01"));
        for cut in 0..notes.len() {
            let _ = build_id(&notes[..cut]);
        }
        assert_eq!(build_id(&[0xff; 64]), None);
    }

    #[test]
    fn this_program_reads_the_same_from_its_file_and_from_memory() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let from_file = Image::from_file(bytes.as_slice()).unwrap();
        let maps = super::super::maps::Maps::of(std::process::id() as i32).unwrap();
        let here = hex as *const () as u64;
        let mapping = maps.find(here).unwrap();
        let first = maps.0.iter().find(|m| m.inode == mapping.inode && m.offset == 0).unwrap();
        let bias = from_file.bias(mapping.start, mapping.offset).unwrap();
        let memory = Memory::of(std::process::id() as i32);
        let from_memory = Image::from_memory(&memory, first.start).unwrap();
        assert_eq!(from_file.function(here - bias), Some(here - bias));
        assert_eq!(from_memory.function(here - bias), Some(here - bias));
        assert_eq!(from_file.build_id, from_memory.build_id);
        let exe = Path::new("/proc/self/exe");
        assert!(from_file.symbol(here - bias, None, Some(exe)).unwrap().contains("capture::image::hex"));
    }

    #[test]
    fn noise_is_no_image() {
        assert!(Image::from_file(&[0u8; 4096][..]).is_none());
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        bytes.truncate(1 << 16);
        for at in (64..bytes.len()).step_by(97) {
            bytes[at] ^= 0xa5;
        }
        if let Some(image) = Image::from_file(bytes.as_slice()) {
            let _ = (image.function(0x1000), image.symbol(0x1000, None, None));
        }
    }
}
