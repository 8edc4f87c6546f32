//! Lays a host object out for an address and relocates it, as plain data: what a loader would put there.
//!
//! Nothing is mapped or called here. Sections go into three parts of whole pages: code, tables (with a global offset table
//! of one slot a symbol), and zeroed memory.

use crate::error::{ErrorKind, ImageError};
use crate::host::{HostObject, HostRelocation, RelocationKind, SymbolPlace};
use std::ops::Range;

const PAGE: u64 = 4096;
/// The largest object that is laid out, bytes. Those of 13.1 to 13.5 take 12 KiB.
const LARGEST: u64 = 16 << 20;

/// A host object as it would lie in memory. Ranges are offsets from the address that it was laid out for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedHost {
    /// All of its memory.
    pub bytes: Vec<u8>,
    /// To be executable.
    pub text: Range<usize>,
    /// To be readable.
    pub tables: Range<usize>,
    /// To stay writable.
    pub bss: Range<usize>,
    /// Where the callbacks table lies; its 72 bytes lie inside [`LinkedHost::bytes`].
    pub callbacks: usize,
}

/// Where each section goes.
struct Layout {
    /// By section index; none for sections that are not mapped.
    places: Vec<Option<u64>>,
    got: u64,
    ends: [u64; 3],
}

impl HostObject {
    /// Bytes that it takes in memory, whole pages.
    ///
    /// # Errors
    /// When its sections are larger or more strictly aligned than a host object's could be.
    pub fn linked_size(&self) -> Result<usize, ImageError> {
        Ok(self.layout()?.ends[2] as usize)
    }

    /// Lays it out and relocates it for address `base`, which must be that of a page.
    ///
    /// # Errors
    /// When a relocation is of a kind that host objects do not use, or needs a symbol that no driver offers.
    pub fn link_at(&self, base: u64) -> Result<LinkedHost, ImageError> {
        let layout = self.layout()?;
        let [text, tables, bss] = layout.ends.map(|end| end as usize);
        let mut bytes = vec![0; bss];
        for (section, place) in self.sections.iter().zip(&layout.places) {
            if let (Some(place), data) = (place, section.data(&self.bytes)) {
                bytes[*place as usize..][..data.len()].copy_from_slice(data);
            }
        }
        for relocation in &self.relocations {
            self.relocate(relocation, &layout, base, &mut bytes)?;
        }
        let callbacks =
            self.callbacks_place(&layout).filter(|place| place + 72 <= layout.ends[2]).ok_or_else(|| {
                let expected = "a host object with the symbol __CUDA_TILEIR_CALLBACKS and 72 bytes there";
                ImageError::malformed(self.offset, expected, "none")
            })?;
        Ok(LinkedHost { bytes, text: 0..text, tables: text..tables, bss: tables..bss, callbacks: callbacks as usize })
    }

    fn layout(&self) -> Result<Layout, ImageError> {
        let mut layout = Layout { places: vec![None; self.sections.len()], got: 0, ends: [0; 3] };
        let mut at = 0u64;
        for part in 0..3 {
            for (index, section) in self.sections.iter().enumerate() {
                let of = match () {
                    () if section.is_executable() => 0,
                    () if section.in_file() => 1,
                    () => 2,
                };
                if !section.is_alloc() || of != part {
                    continue;
                }
                let align = section.align.max(1);
                let fits = align.is_power_of_two() && align <= PAGE && section.size <= LARGEST;
                at = at.next_multiple_of(align.clamp(1, PAGE));
                layout.places[index] = Some(at);
                at = at.saturating_add(section.size);
                if !fits || at > LARGEST {
                    let found = format!("{:#x} bytes aligned to {align:#x}", section.size);
                    let expected = format!("a section of at most {LARGEST:#x} bytes, aligned to a page at most");
                    return Err(ImageError::malformed(self.offset + section.header_offset, expected, found));
                }
            }
            if part == 1 {
                layout.got = at.next_multiple_of(8);
                at = layout.got + 8 * self.symbols.len() as u64;
            }
            at = at.next_multiple_of(PAGE);
            layout.ends[part] = at;
        }
        Ok(layout)
    }

    fn callbacks_place(&self, layout: &Layout) -> Option<u64> {
        let symbol = self.symbols.get(self.callbacks_symbol?)?;
        let SymbolPlace::Section(section) = symbol.place else { return None };
        (*layout.places.get(section)?)?.checked_add(symbol.value)
    }

    /// Offset or number of a symbol's target, and whether it moves with the base.
    fn target(&self, relocation: &HostRelocation, layout: &Layout, base: u64) -> Result<u64, ImageError> {
        let symbol = &self.symbols[relocation.symbol];
        let unknown = |found: String| {
            let expected = "a symbol of the host object itself";
            Err(ImageError::new(ErrorKind::Unsupported, self.offset, expected, found))
        };
        match symbol.place {
            SymbolPlace::Absolute => Ok(symbol.value),
            SymbolPlace::Section(section) => match layout.places[section] {
                Some(place) => Ok(base.wrapping_add(place).wrapping_add(symbol.value)),
                None => unknown(format!("{:?} in a section that is not mapped", crate::elf::shown(&symbol.name))),
            },
            SymbolPlace::Undefined if symbol.name == "_GLOBAL_OFFSET_TABLE_" => Ok(base.wrapping_add(layout.got)),
            SymbolPlace::Undefined => unknown(format!("undefined {:?}", crate::elf::shown(&symbol.name))),
        }
    }

    fn relocate(
        &self,
        relocation: &HostRelocation,
        layout: &Layout,
        base: u64,
        bytes: &mut [u8],
    ) -> Result<(), ImageError> {
        let Some(section) = layout.places[relocation.section] else { return Ok(()) };
        let at = section + relocation.offset;
        let (place, got) = (base.wrapping_add(at), base.wrapping_add(layout.got));
        let target = self.target(relocation, layout, base)?;
        let sum = target.wrapping_add_signed(relocation.addend);
        let value = match relocation.kind {
            RelocationKind::Absolute64 => sum,
            RelocationKind::Relative64 => sum.wrapping_sub(place),
            RelocationKind::GotOffset64 => sum.wrapping_sub(got),
            RelocationKind::GotRelative64 => got.wrapping_add_signed(relocation.addend).wrapping_sub(place),
            RelocationKind::GotSlot64 => {
                let slot = 8 * relocation.symbol as u64;
                put(bytes, layout.got + slot, target);
                slot.wrapping_add_signed(relocation.addend)
            }
            RelocationKind::Other(number) => {
                let expected = "a relocation of x86-64 host objects (kinds 1, 24, 25, 27, 29)";
                let found = format!("kind {number} of {}", self.machine.word());
                return Err(ImageError::new(ErrorKind::Unsupported, self.offset, expected, found));
            }
        };
        put(bytes, at, value);
        Ok(())
    }
}

/// Both callers' places were checked: a relocation leaves 8 bytes of room in its section, the table has a slot a symbol.
fn put(bytes: &mut [u8], at: u64, value: u64) {
    let at = at as usize;
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}
