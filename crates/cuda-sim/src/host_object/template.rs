//! A host object prepared for mapping: where each section goes and what each relocation writes.

use super::arena::Kind;
use crate::error::{Answer, Code};
use cubin_image::{HostRelocation, RelocationKind, Section, SectionKind, SymbolPlace};

/// Offset in one of the three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Which part.
    pub part: Kind,
    /// Offset in it, bytes.
    pub offset: usize,
}

/// What a relocation points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A place in the object.
    Spot(Spot),
    /// The global offset table itself.
    Got,
    /// A plain number.
    Absolute(u64),
}

/// One relocation.
#[derive(Clone, Copy, Debug)]
pub struct Fix {
    /// The eight bytes to write.
    pub at: Spot,
    /// What to compute.
    pub kind: RelocationKind,
    /// Of what.
    pub target: Target,
    /// Plus this.
    pub addend: i64,
    /// Offset in the global offset table of the target's slot, bytes.
    pub slot: usize,
}

/// A host object without addresses.
pub struct Template {
    /// Initial bytes of text and tables, before relocation.
    pub text: Vec<u8>,
    /// As above; ends with the global offset table.
    pub tables: Vec<u8>,
    /// Size of the zeroed part, bytes.
    pub bss_size: usize,
    /// Offset of the global offset table in the tables.
    pub got: usize,
    /// Relocations.
    pub fixes: Vec<Fix>,
    /// The symbol `__CUDA_TILEIR_CALLBACKS`.
    pub callbacks: Spot,
}

/// The one symbol that a host object leaves open.
const GOT_SYMBOL: &str = "_GLOBAL_OFFSET_TABLE_";

impl Template {
    /// Prepares a host object; refuses one of another machine, and one with forms that this driver cannot link.
    pub fn new(object: &cubin_image::HostObject) -> Answer<Template> {
        if object.check_native().is_err() {
            let machine = object.machine.word();
            eprintln!("cuda-sim: the image's host object is for {machine}, this driver runs x86-64 host code only");
            return Err(Code::NOT_SUPPORTED);
        }
        let mut layout = Layout::default();
        for part in [Kind::Text, Kind::Tables, Kind::Bss] {
            layout.place_sections(object, part)?;
        }
        let got = layout.tables.len().next_multiple_of(8);
        layout.tables.resize(got + 8 * object.symbols.len(), 0);
        let symbol = object.callbacks_symbol.and_then(|index| object.symbols.get(index)).ok_or(Code::INVALID_IMAGE)?;
        let SymbolPlace::Section(section) = symbol.place else { return Err(Code::INVALID_IMAGE) };
        let callbacks = layout.spot(section, symbol.value, 72)?;
        let fixes = object.relocations.iter().map(|r| layout.fix(object, r)).collect::<Answer<Vec<_>>>()?;
        Ok(Template { text: layout.text, tables: layout.tables, bss_size: layout.bss_size, got, fixes, callbacks })
    }
}

#[derive(Default)]
struct Layout {
    text: Vec<u8>,
    tables: Vec<u8>,
    bss_size: usize,
    /// Where each section went.
    spots: Vec<Option<Spot>>,
}

/// Which part a section belongs to: code, zeroed memory, or all the rest.
fn part_of(section: &Section) -> Kind {
    if section.is_executable() {
        Kind::Text
    } else if section.kind == SectionKind::NoBits {
        Kind::Bss
    } else {
        Kind::Tables
    }
}

impl Layout {
    fn place_sections(&mut self, object: &cubin_image::HostObject, part: Kind) -> Answer {
        self.spots.resize(object.sections.len(), None);
        for (index, section) in object.sections.iter().enumerate() {
            if !section.is_alloc() || part_of(section) != part {
                continue;
            }
            // movaps on tables and zeroed memory wants 16 bytes, whatever the section says.
            let align = (section.align.clamp(16, 4096) as usize).next_power_of_two();
            let offset = self.size(part).next_multiple_of(align);
            match part {
                Kind::Bss => {
                    let end = (offset as u64).checked_add(section.size).filter(|&end| end <= 1 << 20);
                    self.bss_size = end.ok_or(Code::INVALID_IMAGE)? as usize;
                }
                _ => {
                    let bytes = if part == Kind::Text { &mut self.text } else { &mut self.tables };
                    bytes.resize(offset, 0);
                    bytes.extend_from_slice(section.data(&object.bytes));
                }
            }
            self.spots[index] = Some(Spot { part, offset });
        }
        Ok(())
    }

    fn size(&self, part: Kind) -> usize {
        match part {
            Kind::Text => self.text.len(),
            Kind::Tables => self.tables.len(),
            Kind::Bss => self.bss_size,
        }
    }

    /// The spot of `room` bytes at `offset` of a section.
    fn spot(&self, section: usize, offset: u64, room: usize) -> Answer<Spot> {
        let start = self.spots.get(section).copied().flatten().ok_or(Code::INVALID_IMAGE)?;
        let offset = (start.offset as u64).checked_add(offset).ok_or(Code::INVALID_IMAGE)?;
        if offset.checked_add(room as u64).is_none_or(|end| end > self.size(start.part) as u64) {
            return Err(Code::INVALID_IMAGE);
        }
        Ok(Spot { part: start.part, offset: offset as usize })
    }

    fn fix(&self, object: &cubin_image::HostObject, relocation: &HostRelocation) -> Answer<Fix> {
        if matches!(relocation.kind, RelocationKind::Other(_)) {
            return Err(Code::INVALID_IMAGE);
        }
        let symbol = object.symbols.get(relocation.symbol).ok_or(Code::INVALID_IMAGE)?;
        let target = match symbol.place {
            SymbolPlace::Section(section) => Target::Spot(self.spot(section, symbol.value, 0)?),
            SymbolPlace::Absolute => Target::Absolute(symbol.value),
            SymbolPlace::Undefined if symbol.name == GOT_SYMBOL => Target::Got,
            SymbolPlace::Undefined => return Err(Code::INVALID_IMAGE),
        };
        let at = self.spot(relocation.section, relocation.offset, 8)?;
        if at.part == Kind::Bss {
            return Err(Code::INVALID_IMAGE);
        }
        Ok(Fix { at, kind: relocation.kind, target, addend: relocation.addend, slot: 8 * relocation.symbol })
    }
}
