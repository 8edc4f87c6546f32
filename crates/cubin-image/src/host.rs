//! The host object of a Tile image: a relocatable ELF file with the callbacks that the driver is to call.
//!
//! Read, never run, here. Forms seen: 13.1 to 13.3 absolute relocations with the tables in `.lrodata`; 13.4 and 13.5
//! position independent with the tables in `.data.rel.ro`. A Windows build cannot be told from a Linux one.

use crate::callbacks::CallbackTable;
use crate::elf::{Elf, RawSymbol, Section};
use crate::error::ImageError;
use crate::reader;

/// What the host code runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// `EM_X86_64`.
    X86_64,
    /// `EM_AARCH64`.
    Aarch64,
    /// Any other number.
    Other(u16),
}

impl Machine {
    /// The machine of this ELF number.
    pub fn from_number(number: u16) -> Machine {
        match number {
            62 => Machine::X86_64,
            183 => Machine::Aarch64,
            other => Machine::Other(other),
        }
    }

    /// The word used in output.
    pub fn word(self) -> String {
        match self {
            Machine::X86_64 => "x86-64".into(),
            Machine::Aarch64 => "aarch64".into(),
            Machine::Other(number) => format!("machine {number}"),
        }
    }

    /// Whether code for it runs in this process.
    pub fn is_native(self) -> bool {
        match self {
            Machine::X86_64 => cfg!(target_arch = "x86_64"),
            Machine::Aarch64 => cfg!(target_arch = "aarch64"),
            Machine::Other(_) => false,
        }
    }
}

/// Where a symbol stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPlace {
    /// Not in the object.
    Undefined,
    /// A plain number.
    Absolute,
    /// In the section of this index, which exists.
    Section(usize),
}

/// A symbol of the host object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSymbol {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub place: SymbolPlace,
    /// Its offset in its section.
    pub value: u64,
    /// Its size, bytes.
    pub size: u64,
    /// Bound globally.
    pub global: bool,
    /// `STT_FUNC`.
    pub function: bool,
}

/// What a relocation asks for, with S symbol, A addend, P place, G slot in the global offset table GOT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// 64 bits, S + A.
    Absolute64,
    /// 64 bits, S + A - P.
    Relative64,
    /// 64 bits, S + A - GOT.
    GotOffset64,
    /// 64 bits, GOT + A - P.
    GotRelative64,
    /// 64 bits, G + A - GOT: offset of the symbol's slot.
    GotSlot64,
    /// One that x86-64 host objects of 13.1 to 13.5 do not use.
    Other(u32),
}

impl RelocationKind {
    fn new(machine: Machine, number: u32) -> RelocationKind {
        match (machine, number) {
            (Machine::X86_64, 1) | (Machine::Aarch64, 257) => RelocationKind::Absolute64,
            (Machine::X86_64, 24) | (Machine::Aarch64, 260) => RelocationKind::Relative64,
            (Machine::X86_64, 25) => RelocationKind::GotOffset64,
            (Machine::X86_64, 27) => RelocationKind::GotSlot64,
            (Machine::X86_64, 29) => RelocationKind::GotRelative64,
            (_, other) => RelocationKind::Other(other),
        }
    }
}

/// One relocation, its section and symbol checked to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRelocation {
    /// Index of the section that it changes.
    pub section: usize,
    /// Offset in that section; checked to leave room for 8 bytes where the kind is a 64-bit one.
    pub offset: u64,
    /// What it asks for.
    pub kind: RelocationKind,
    /// Its number in the machine's own list.
    pub number: u32,
    /// Index of its symbol in [`HostObject::symbols`].
    pub symbol: usize,
    /// Its addend.
    pub addend: i64,
}

/// The host object of a Tile image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostObject {
    /// The whole ELF file.
    pub bytes: Vec<u8>,
    /// Where it stands in the image's file.
    pub offset: u64,
    /// What it runs on.
    pub machine: Machine,
    /// Its sections; offsets are those inside [`HostObject::bytes`].
    pub sections: Vec<Section>,
    /// Its symbols; the first is the empty one.
    pub symbols: Vec<HostSymbol>,
    /// Relocations of mapped sections.
    pub relocations: Vec<HostRelocation>,
    /// Index of the symbol `__CUDA_TILEIR_CALLBACKS`.
    pub callbacks_symbol: Option<usize>,
    /// The table at that symbol, as far as it can be read without linking.
    pub callbacks: Option<CallbackTable>,
    /// `.nv.merc.nv.host`, a second copy (sm_100 and later): its file offset and whether its bytes are the same.
    pub second_copy: Option<(u64, bool)>,
}

impl HostObject {
    /// Size of the ELF file, bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of machine code in it.
    pub fn code_size(&self) -> u64 {
        self.sections.iter().filter(|s| s.is_alloc() && s.is_executable()).map(|s| s.size).fold(0, u64::saturating_add)
    }

    /// The symbol of that exact name.
    pub fn symbol(&self, name: &str) -> Option<&HostSymbol> {
        self.symbols.iter().find(|s| s.name == name)
    }

    /// Refuses a host object that cannot run in this process.
    pub fn check_native(&self) -> Result<(), ImageError> {
        if self.machine.is_native() {
            return Ok(());
        }
        let (want, found) =
            (std::env::consts::ARCH.replace('_', "-"), format!("a host object for {}", self.machine.word()));
        Err(ImageError::new(crate::ErrorKind::Unsupported, self.offset + 18, format!("host code for {want}"), found))
    }

    /// Reads the host object that stands at `offset` of the image's file. Errors name offsets of that file.
    pub fn parse(bytes: &[u8], offset: u64) -> Result<HostObject, ImageError> {
        HostObject::read(bytes, offset).map_err(|e| e.rebased(offset))
    }

    fn read(bytes: &[u8], offset: u64) -> Result<HostObject, ImageError> {
        let mut elf = Elf::parse(bytes)?;
        if elf.file_type != 1 {
            let found = format!("type {}", elf.file_type);
            return Err(ImageError::malformed(16, "a relocatable host object (type 1)", found));
        }
        let machine = Machine::from_number(elf.machine);
        let symbols = read_symbols(&mut elf)?;
        let relocations = read_relocations(&elf, machine, symbols.len())?;
        let callbacks_symbol = symbols
            .iter()
            .position(|s| s.name == "__CUDA_TILEIR_CALLBACKS" && matches!(s.place, SymbolPlace::Section(_)));
        let mut host = HostObject {
            bytes: bytes.to_vec(),
            offset,
            machine,
            sections: std::mem::take(&mut elf.sections),
            symbols,
            relocations,
            callbacks_symbol,
            callbacks: None,
            second_copy: None,
        };
        host.callbacks = CallbackTable::read(&host);
        Ok(host)
    }
}

fn read_symbols(elf: &mut Elf) -> Result<Vec<HostSymbol>, ImageError> {
    let Some(table) = elf.sections.iter().position(|s| s.raw_type == 2) else { return Ok(Vec::new()) };
    let at = elf.sections[table].offset;
    let (raw, strings) = elf.symbols(table)?;
    let mut symbols = Vec::with_capacity(raw.len());
    for (index, symbol) in raw.iter().enumerate() {
        let field = at + 24 * index as u64;
        let place = symbol_place(symbol, elf.sections.len()).ok_or_else(|| {
            let found = format!("{} of {} sections", symbol.section, elf.sections.len());
            ImageError::malformed(field + 6, "the index of a section of the host object", found)
        })?;
        let name = elf.take_name(strings, symbol.name, field)?;
        let (global, function) = (symbol.bind == 1, symbol.kind == 2);
        symbols.push(HostSymbol { name, place, value: symbol.value, size: symbol.size, global, function });
    }
    Ok(symbols)
}

fn symbol_place(symbol: &RawSymbol, sections: usize) -> Option<SymbolPlace> {
    match symbol.section {
        0 => Some(SymbolPlace::Undefined),
        0xfff1 => Some(SymbolPlace::Absolute),
        index if usize::from(index) < sections => Some(SymbolPlace::Section(usize::from(index))),
        _ => None,
    }
}

fn read_relocations(elf: &Elf, machine: Machine, symbols: usize) -> Result<Vec<HostRelocation>, ImageError> {
    let mut relocations = Vec::new();
    // A table may be named by many section headers: no more relocations than the file could hold once.
    let most = elf.data.len() / 24;
    for table in elf.sections.iter().filter(|s| s.raw_type == 4) {
        let target = table.info as usize;
        let Some(section) = elf.sections.get(target) else {
            let found = format!("{target} of {} sections", elf.sections.len());
            return Err(ImageError::malformed(table.header_offset + 0x2c, "the index of a section to relocate", found));
        };
        if !section.is_alloc() {
            continue;
        }
        for (index, entry) in table.data(elf.data).chunks_exact(24).enumerate() {
            let field = table.offset + 24 * index as u64;
            if relocations.len() >= most {
                return Err(ImageError::malformed(field, "relocations that fit into the file", "tables that overlap"));
            }
            relocations.push(relocation(entry, machine, target, section, symbols).map_err(|e| e.rebased(field))?);
        }
    }
    Ok(relocations)
}

fn relocation(
    entry: &[u8],
    machine: Machine,
    target: usize,
    section: &Section,
    symbols: usize,
) -> Result<HostRelocation, ImageError> {
    let word = |at| reader::u64_at(entry, at).unwrap_or(0);
    let (offset, info, addend) = (word(0), word(8), word(16) as i64);
    let (symbol, number) = ((info >> 32) as usize, info as u32);
    let kind = RelocationKind::new(machine, number);
    let width = if matches!(kind, RelocationKind::Other(_)) { 1 } else { 8 };
    if offset.checked_add(width).is_none_or(|end| end > section.size) {
        let found = format!("offset {offset:#x} in a section of {:#x} bytes", section.size);
        return Err(ImageError::malformed(0, "a relocation inside its section", found));
    }
    if symbol >= symbols {
        let found = format!("symbol {symbol} of {symbols}");
        return Err(ImageError::malformed(12, "the index of a symbol of the host object", found));
    }
    Ok(HostRelocation { section: target, offset, kind, number, symbol, addend })
}
