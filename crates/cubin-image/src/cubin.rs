//! A cubin: architecture, compiler, sections, kernels, and for Tile images the host object.

use crate::attribute::{Attributes, number};
use crate::compiler::{Compiler, CompilerKind, Language, ToolNote, api_version_text};
use crate::elf::{Elf, RawSymbol, Section, SectionKind, shown};
use crate::error::{ErrorKind, ImageError};
use crate::giveaway::{SourcePath, read_line_section};
use crate::host::HostObject;
use crate::kernel::Kernel;
use crate::kind::EM_CUDA;
use crate::tile_metadata::TileMetadata;
use std::collections::HashMap;

/// Bit of `st_other` that marks a function as a kernel (`STO_CUDA_ENTRY`).
const ENTRY: u8 = 0x10;
/// `EI_OSABI` of cubins of the older layout, whose architecture is the low byte of `e_flags`.
const OLD_ABI: u8 = 0x33;

/// A cubin as data. Offsets are those in its file; section bytes come from the image that it was read from
/// ([`Section::data`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    /// Architecture number: 120 for sm_120 (`e_flags` byte 1).
    pub arch: u32,
    /// `e_flags`.
    pub flags: u32,
    /// Debug byte (`e_flags` byte 3): 0x06 none, 0x09 line information, 0x0b `-g` (or lines from 13.4 on), 0x0f device debug.
    pub debug: u8,
    /// ELF type: 2 for a linked cubin, 1 for a relocatable one.
    pub file_type: u16,
    /// ELF ABI version: 8 for the layout of CUDA 13.
    pub abi_version: u8,
    /// Sections in order; the first is the empty one.
    pub sections: Vec<Section>,
    /// Kernels in order of their machine code's sections.
    pub kernels: Vec<Kernel>,
    /// What the tool note says, where there is one.
    pub tool: Option<ToolNote>,
    /// Folder and file names that the image gives away.
    pub source_paths: Vec<SourcePath>,
    /// The metadata symbol of Tile images from 13.3 on.
    pub metadata: Option<TileMetadata>,
    host: Option<HostObject>,
}

impl Cubin {
    /// Reads a cubin. Everything that a later step relies on was checked: section ranges, names, symbol and relocation
    /// indices. Unknown sections and attributes are kept and not judged.
    ///
    /// # Errors
    /// One line with offset and expectation; bytes of another form are [`ErrorKind::WrongForm`].
    pub fn parse(data: &[u8]) -> Result<Cubin, ImageError> {
        let mut elf = Elf::parse(data)?;
        if elf.machine != EM_CUDA {
            let found = format!("machine {}", elf.machine);
            return Err(ImageError::new(ErrorKind::WrongForm, 18, "a CUDA ELF file (machine 190)", found));
        }
        let host = read_host(&elf)?;
        let mut builder = Builder::new(&mut elf)?;
        let kernels = builder.kernels()?;
        let metadata = builder.metadata(host.as_ref());
        let source_paths = builder.source_paths();
        let tool = elf.section(".note.nv.tkinfo").and_then(|(_, s)| ToolNote::read(s.data(data)));
        let arch = if elf.os_abi == OLD_ABI { elf.flags & 0xff } else { elf.flags >> 8 & 0xff };
        Ok(Cubin {
            arch,
            flags: elf.flags,
            debug: (elf.flags >> 24) as u8,
            file_type: elf.file_type,
            abi_version: elf.abi_version,
            sections: elf.sections,
            kernels,
            tool,
            source_paths,
            metadata,
            host,
        })
    }

    /// Whether the Tile IR compiler made it: a section `.nv.host` of type 0x70000087. Neither the language attribute nor
    /// `e_flags` tells.
    pub fn is_tile(&self) -> bool {
        self.host.is_some()
    }

    /// The host object of a Tile image.
    pub fn host_object(&self) -> Option<&HostObject> {
        self.host.as_ref()
    }

    /// The kernel of that exact name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// The section of that exact name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Source languages of all kernels, each once.
    pub fn languages(&self) -> Vec<Language> {
        let mut numbers: Vec<u32> = self.kernels.iter().flat_map(|k| k.languages.iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(Language::from).collect()
    }

    /// Who made it, in which version.
    pub fn compiler(&self) -> Compiler {
        let noted = self.tool.as_ref().and_then(|t| t.version_number()).map(str::to_owned);
        let release = self.kernels.iter().find_map(|k| k.api_version).map(api_version_text);
        if self.host.is_some() {
            return Compiler { kind: CompilerKind::Tileiras, version: release, back_end: noted };
        }
        let is_ptxas = self.tool.as_ref().is_some_and(|t| t.tool == "ptxas");
        let kind = if is_ptxas { CompilerKind::Ptxas } else { CompilerKind::Unknown };
        Compiler { kind, version: noted.or(release), back_end: None }
    }

    /// The PTX text that line information brings along, lines separated by NUL.
    pub fn embedded_ptx<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        self.section(".nv_debug_ptx_txt").map(|s| s.data(data)).filter(|d| !d.is_empty())
    }

    /// The Tile IR text that 13.4 and later bring along with line information.
    pub fn embedded_tile_ir<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        let section = self.sections.iter().find(|s| s.name.starts_with(".nv.tileir.debug_txt"))?;
        Some(section.data(data)).filter(|d| !d.is_empty())
    }
}

fn read_host(elf: &Elf) -> Result<Option<HostObject>, ImageError> {
    let is_host = |s: &&Section| s.kind == SectionKind::EmbeddedHost;
    let Some(section) = elf.sections.iter().filter(is_host).find(|s| s.name == ".nv.host") else { return Ok(None) };
    let bytes = section.data(elf.data);
    let mut host = HostObject::parse(bytes, section.offset)?;
    host.second_copy = elf
        .sections
        .iter()
        .filter(is_host)
        .find(|s| s.name == ".nv.merc.nv.host")
        .map(|s| (s.offset, s.data(elf.data) == bytes));
    Ok(Some(host))
}

/// Puts kernels together from sections and symbols that name each other.
struct Builder<'e, 'a> {
    elf: &'e mut Elf<'a>,
    by_name: HashMap<String, usize>,
    symbols: Vec<RawSymbol>,
    strings: &'a [u8],
    symbols_at: u64,
    /// Bytes of overlapping sections that may still be read.
    budget: usize,
}

impl<'e, 'a> Builder<'e, 'a> {
    fn new(elf: &'e mut Elf<'a>) -> Result<Builder<'e, 'a>, ImageError> {
        let mut by_name = HashMap::with_capacity(elf.sections.len());
        for (index, section) in elf.sections.iter().enumerate() {
            by_name.entry(section.name.clone()).or_insert(index);
        }
        let (mut symbols, mut strings, mut symbols_at) = (Vec::new(), &[][..], 0);
        if let Some(table) = elf.sections.iter().position(|s| s.kind == SectionKind::Symbols) {
            symbols_at = elf.sections[table].offset;
            (symbols, strings) = elf.symbols(table)?;
        }
        let budget = elf.data.len().saturating_mul(4);
        Ok(Builder { elf, by_name, symbols, strings, symbols_at, budget })
    }

    fn kernels(&mut self) -> Result<Vec<Kernel>, ImageError> {
        let mut kernels = Vec::new();
        // One text section holds one kernel, under the first entry symbol that stands in it.
        let mut entries: HashMap<u16, usize> = HashMap::new();
        for (index, symbol) in self.symbols.iter().enumerate() {
            if symbol.kind == 2 && symbol.other & ENTRY != 0 && symbol.section != 0 {
                entries.entry(symbol.section).or_insert(index);
            }
        }
        let (mut of_symbol, mut ordered): (HashMap<u32, usize>, Vec<_>) =
            (HashMap::new(), entries.into_iter().collect());
        ordered.sort_unstable();
        for (section, symbol) in ordered {
            of_symbol.insert(symbol as u32, kernels.len());
            kernels.push(self.kernel(usize::from(section), symbol)?);
        }
        self.common_attributes(&mut kernels, &of_symbol)?;
        Ok(kernels)
    }

    fn kernel(&mut self, text: usize, symbol: usize) -> Result<Kernel, ImageError> {
        let raw = self.symbols[symbol];
        let field = self.symbols_at + 24 * symbol as u64;
        let name = self.elf.take_name(self.strings, raw.name, field)?;
        let Some(section) = self.elf.sections.get(text) else {
            let found = format!("{text} of {} sections", self.elf.sections.len());
            return Err(ImageError::malformed(field + 6, format!("the section of kernel {:?}", shown(&name)), found));
        };
        let mut kernel = Kernel {
            text_offset: section.offset,
            text_size: section.size,
            // Registers also stand in the top byte of sh_info; the attribute, read later, has the last word.
            registers: Some(section.info >> 24).filter(|&r| r != 0),
            ..Kernel::default()
        };
        kernel.shared_size = self.size_of(".nv.shared.", &name);
        kernel.constant_size = self.size_of(".nv.constant0.", &name);
        if let Some(&index) = self.by_name.get(&format!(".nv.info.{name}")) {
            let (data, offset) = self.section_bytes(index)?;
            kernel.read_attributes(data).map_err(|e| e.rebased(offset))?;
        }
        kernel.name = name;
        Ok(kernel)
    }

    fn size_of(&self, prefix: &str, kernel: &str) -> u64 {
        self.by_name.get(&format!("{prefix}{kernel}")).map_or(0, |&i| self.elf.sections[i].size)
    }

    /// A section's bytes and their offset, under the budget for sections that overlap.
    fn section_bytes(&mut self, index: usize) -> Result<(&'a [u8], u64), ImageError> {
        let section = &self.elf.sections[index];
        let data = section.data(self.elf.data);
        self.budget = self.budget.checked_sub(data.len()).ok_or_else(|| {
            ImageError::malformed(
                section.header_offset,
                "sections that add up to less than four times the file",
                "more",
            )
        })?;
        Ok((data, section.offset))
    }

    /// `.nv.info` itself: registers, frames and stacks by symbol index.
    fn common_attributes(&mut self, kernels: &mut [Kernel], of_symbol: &HashMap<u32, usize>) -> Result<(), ImageError> {
        let Some(&index) = self.by_name.get(".nv.info") else { return Ok(()) };
        let (data, offset) = self.section_bytes(index)?;
        for record in Attributes::new(data) {
            let record = record.map_err(|e| e.rebased(offset))?;
            let (Some(symbol), Some(value)) = (record.word(0), record.word(1)) else { continue };
            let Some(kernel) = of_symbol.get(&symbol).and_then(|&i| kernels.get_mut(i)) else { continue };
            match record.number {
                number::REGCOUNT => kernel.registers = Some(value),
                number::FRAME_SIZE => kernel.frame_size = Some(value),
                number::MIN_STACK_SIZE => kernel.min_stack_size = Some(value),
                _ => {}
            }
        }
        Ok(())
    }

    fn metadata(&self, host: Option<&HostObject>) -> Option<TileMetadata> {
        const NAME: &[u8] = b"___NV_TILE_LAUNCH_META_DATA___\0";
        let is_it = |s: &&RawSymbol| self.strings.get(s.name as usize..).is_some_and(|t| t.starts_with(NAME));
        let symbol = self.symbols.iter().find(is_it)?;
        let section = self.elf.sections.get(usize::from(symbol.section))?;
        let bytes = crate::reader::range(section.data(self.elf.data), symbol.value, symbol.size).unwrap_or(&[]);
        Some(TileMetadata::read(section.name.clone(), symbol.size, bytes, host))
    }

    fn source_paths(&mut self) -> Vec<SourcePath> {
        let mut found = Vec::new();
        for index in 0..self.elf.sections.len() {
            if !self.elf.sections[index].name.ends_with("debug_line") {
                continue;
            }
            let Ok((data, offset)) = self.section_bytes(index) else { break };
            read_line_section(data, index, offset, &mut found);
        }
        found
    }
}
