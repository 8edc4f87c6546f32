//! The ELF frame that cubins and host objects share: header, sections with checked ranges, symbols with bounded names.
//!
//! Stands on `object`'s low-level reader. What it adds: every range is checked once, here, and names are copied under a
//! budget, because a hostile string table can be named by every section and every symbol.

use crate::error::{ErrorKind, ImageError};
use crate::reader;
use object::LittleEndian;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{elf, elf::FileHeader64};

type Header = FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// The longest name that is read, bytes. Mangled C++ kernel names of several KiB exist.
const NAME_LIMIT: usize = 32 * 1024;

/// What a section holds, as far as this crate cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// The unused first entry and its like.
    Null,
    /// Bytes in the file.
    Bytes,
    /// No bytes in the file (`SHT_NOBITS` and CUDA's own kinds of it).
    NoBits,
    /// `SHT_SYMTAB`.
    Symbols,
    /// `SHT_STRTAB`.
    Strings,
    /// `SHT_REL` or `SHT_RELA`.
    Relocations,
    /// `SHT_NOTE`.
    Note,
    /// `SHT_CUDA_INFO`: attribute records.
    CudaInfo,
    /// `SHT_CUDA_EMBEDDED_HOST` (0x70000087): host code that the Tile IR compiler put in.
    EmbeddedHost,
}

/// One section, its range checked against the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// `sh_type` as it stands in the file.
    pub raw_type: u32,
    /// What it holds.
    pub kind: SectionKind,
    /// `sh_flags`.
    pub flags: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Size, bytes; of a [`SectionKind::NoBits`] section that in memory.
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_addralign`, bytes.
    pub align: u64,
    /// File offset of its section header.
    pub header_offset: u64,
}

impl Section {
    /// Its bytes in the image that it was read from; none where it has none in the file.
    pub fn data<'a>(&self, image: &'a [u8]) -> &'a [u8] {
        if self.in_file() { reader::range(image, self.offset, self.size).unwrap_or(&[]) } else { &[] }
    }

    /// Whether its bytes stand in the file.
    pub fn in_file(&self) -> bool {
        !matches!(self.kind, SectionKind::NoBits | SectionKind::Null)
    }

    /// `SHF_ALLOC`: it is mapped when the object is loaded.
    pub fn is_alloc(&self) -> bool {
        self.flags & 0x2 != 0
    }

    /// `SHF_EXECINSTR`.
    pub fn is_executable(&self) -> bool {
        self.flags & 0x4 != 0
    }

    /// `SHF_WRITE`.
    pub fn is_writable(&self) -> bool {
        self.flags & 0x1 != 0
    }
}

/// A symbol without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSymbol {
    pub name: u32,
    pub bind: u8,
    pub kind: u8,
    pub other: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

/// An ELF file that was checked as far as its sections go.
pub(crate) struct Elf<'a> {
    pub data: &'a [u8],
    pub machine: u16,
    pub file_type: u16,
    pub os_abi: u8,
    pub abi_version: u8,
    pub flags: u32,
    pub sections: Vec<Section>,
    name_budget: usize,
}

impl<'a> Elf<'a> {
    /// Reads header and section table of a 64-bit little-endian ELF.
    pub fn parse(data: &'a [u8]) -> Result<Elf<'a>, ImageError> {
        let header = file_header(data)?;
        let mut elf = Elf {
            data,
            machine: header.e_machine(LE).0,
            file_type: header.e_type(LE).0,
            os_abi: data.get(7).copied().unwrap_or(0),
            abi_version: data.get(8).copied().unwrap_or(0),
            flags: header.e_flags(LE).0,
            sections: Vec::new(),
            name_budget: data.len().saturating_mul(4).saturating_add(NAME_LIMIT),
        };
        elf.read_sections(header)?;
        check_segments(header, data)?;
        Ok(elf)
    }

    fn read_sections(&mut self, header: &Header) -> Result<(), ImageError> {
        let table_at = header.e_shoff(LE);
        let table = header.section_headers(LE, self.data).map_err(|_| {
            let (count, size) = (header.e_shnum(LE), header.e_shentsize(LE));
            ImageError::truncated(
                0x28,
                "a section header table inside the file with entries of 64 bytes",
                format!("{count} entries of {size} bytes at {table_at:#x} in a file of {:#x} bytes", self.data.len()),
            )
        })?;
        if table.is_empty() {
            return Err(ImageError::malformed(0x3c, "at least one section", "no section header table"));
        }
        let names = self.section_names(header, table)?;
        self.sections.reserve_exact(table.len());
        for (index, raw) in table.iter().enumerate() {
            let header_offset = table_at + 64 * index as u64;
            let name = self.take_name(names, raw.sh_name(LE), header_offset)?;
            let section = checked_section(raw, name, header_offset, self.data.len() as u64)?;
            self.sections.push(section);
        }
        Ok(())
    }

    fn section_names(
        &self,
        header: &Header,
        table: &[<Header as FileHeader>::SectionHeader],
    ) -> Result<&'a [u8], ImageError> {
        let refuse =
            |found: String| ImageError::malformed(0x3e, "the index of the section with the section names", found);
        let index = header.shstrndx(LE, self.data).map_err(|e| refuse(e.to_string()))?;
        let section =
            table.get(index as usize).ok_or_else(|| refuse(format!("{index} of {} sections", table.len())))?;
        section.data(LE, self.data).map_err(|_| refuse(format!("section {index}, whose bytes lie outside the file")))
    }

    /// Copies a name out of a string table, under the budget.
    pub fn take_name(&mut self, strings: &[u8], at: u32, field_offset: u64) -> Result<String, ImageError> {
        let bytes = reader::c_string(strings, at as usize, NAME_LIMIT).ok_or_else(|| {
            let found = format!("{at:#x} in a string table of {:#x} bytes", strings.len());
            ImageError::malformed(field_offset, "the position of a NUL-terminated name", found)
        })?;
        self.name_budget = self.name_budget.checked_sub(bytes.len() + 1).ok_or_else(|| {
            ImageError::malformed(field_offset, "names that add up to less than four times the file", "more than that")
        })?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The first section of that exact name.
    pub fn section(&self, name: &str) -> Option<(usize, &Section)> {
        self.sections.iter().enumerate().find(|(_, s)| s.name == name)
    }

    /// Symbols of the symbol table in section `table`, and the strings that name them.
    pub fn symbols(&self, table: usize) -> Result<(Vec<RawSymbol>, &'a [u8]), ImageError> {
        let Some(section) = self.sections.get(table) else { return Ok((Vec::new(), &[])) };
        let data = section.data(self.data);
        let raw: &[elf::Sym64<LittleEndian>] = object::pod::slice_from_all_bytes(data).map_err(|()| {
            let found = format!("{:#x} bytes", section.size);
            ImageError::malformed(section.header_offset + 0x20, "a symbol table of whole 24-byte entries", found)
        })?;
        let strings = self.sections.get(section.link as usize).map_or(&[][..], |s| s.data(self.data));
        let symbols = raw.iter().map(|s| RawSymbol {
            name: s.st_name(LE),
            bind: s.st_bind().0,
            kind: s.st_type().0,
            other: s.st_other().0,
            section: s.st_shndx(LE).0,
            value: s.st_value(LE),
            size: s.st_size(LE),
        });
        Ok((symbols.collect(), strings))
    }
}

fn file_header(data: &[u8]) -> Result<&Header, ImageError> {
    if data.is_empty() {
        return Err(ImageError::new(ErrorKind::Empty, 0, "an ELF file", "no bytes"));
    }
    if !data.starts_with(b"\x7fELF") {
        let first: Vec<String> = data.iter().take(4).map(|b| format!("{b:02x}")).collect();
        return Err(ImageError::new(ErrorKind::WrongForm, 0, "an ELF file (7f 45 4c 46)", first.join(" ")));
    }
    if data.len() < 64 {
        let found = format!("a file of {:#x} bytes", data.len());
        return Err(ImageError::truncated(0, "an ELF header of 0x40 bytes", found));
    }
    if data[4] != 2 || data[5] != 1 {
        let found = format!("class {} and byte order {}", data[4], data[5]);
        return Err(ImageError::new(ErrorKind::Unsupported, 4, "a 64-bit little-endian ELF file (02 01)", found));
    }
    Header::parse(data).map_err(|e| ImageError::malformed(0, "an ELF header", e.to_string()))
}

/// A loader maps segments: their table and their bytes must lie inside the file.
fn check_segments(header: &Header, data: &[u8]) -> Result<(), ImageError> {
    let table_at = header.e_phoff(LE);
    let segments = header.program_headers(LE, data).map_err(|_| {
        let (count, size) = (header.e_phnum(LE), header.e_phentsize(LE));
        ImageError::truncated(
            0x20,
            "a program header table inside the file with entries of 56 bytes",
            format!("{count} entries of {size} bytes at {table_at:#x} in a file of {:#x} bytes", data.len()),
        )
    })?;
    for (index, segment) in segments.iter().enumerate() {
        let (offset, size) = (segment.p_offset(LE), segment.p_filesz(LE));
        if reader::range(data, offset, size).is_none() {
            return Err(ImageError::truncated(
                table_at + 56 * index as u64 + 8,
                format!("segment {index} inside the file"),
                format!("{size:#x} bytes at {offset:#x} in a file of {:#x} bytes", data.len()),
            ));
        }
    }
    Ok(())
}

fn checked_section(
    raw: &<Header as FileHeader>::SectionHeader,
    name: String,
    header_offset: u64,
    file_size: u64,
) -> Result<Section, ImageError> {
    let raw_type = raw.sh_type(LE).0;
    let section = Section {
        kind: section_kind(raw_type),
        raw_type,
        flags: raw.sh_flags(LE).0,
        offset: raw.sh_offset(LE),
        size: raw.sh_size(LE),
        link: raw.sh_link(LE),
        info: raw.sh_info(LE),
        align: raw.sh_addralign(LE),
        header_offset,
        name,
    };
    let inside = section.offset.checked_add(section.size).is_some_and(|end| end <= file_size);
    if section.in_file() && !inside {
        return Err(ImageError::truncated(
            header_offset + 0x18,
            format!("section {:?} inside the file", shown(&section.name)),
            format!("{:#x} bytes at {:#x} in a file of {file_size:#x} bytes", section.size, section.offset),
        ));
    }
    Ok(section)
}

/// A name cut to what fits into a message.
pub(crate) fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(80).collect();
    if text.len() < name.len() {
        text.push('…');
    }
    text
}

fn section_kind(raw_type: u32) -> SectionKind {
    match raw_type {
        0 => SectionKind::Null,
        2 => SectionKind::Symbols,
        3 => SectionKind::Strings,
        4 | 9 => SectionKind::Relocations,
        7 => SectionKind::Note,
        // CUDA's own sections without bytes: .nv.shared.* and .nv.global in older and in merged copies (seen: 0x70000015).
        8 | 0x7000_0007 | 0x7000_000a | 0x7000_0015 => SectionKind::NoBits,
        0x7000_0000 => SectionKind::CudaInfo,
        0x7000_0087 => SectionKind::EmbeddedHost,
        _ => SectionKind::Bytes,
    }
}
