//! The table that a host object offers to the driver, read from its bytes and relocations without linking it.
//!
//! Layout measured on 13.1 to 13.5: 72 bytes with the size of an entry at 0x20, the array at 0x28, the number of entries
//! at 0x30, the host interface's version at 0x38 and the load callback at 0x40; an entry has its kernel's name at 0 and
//! the callback for changed arguments at 0x28.

use crate::host::{HostObject, RelocationKind, SymbolPlace};
use crate::reader;
use std::collections::HashMap;

/// One kernel's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackEntry {
    /// The kernel that it names.
    pub kernel: String,
    /// Symbol of the callback for changed arguments; none where the slot is empty.
    pub on_arguments_change: Option<String>,
    /// That callback's size, bytes.
    pub size: u64,
}

/// The callbacks table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackTable {
    /// First word: 2 in every version seen.
    pub version: u32,
    /// Size of an entry, bytes: 64 in every version seen.
    pub entry_size: u64,
    /// Word at 0x38: 1 up to 13.3, 2 from 13.4.
    pub api_version: u32,
    /// Symbol of the callback for loading.
    pub on_pre_load: Option<String>,
    /// One entry a kernel; 13.1 and 13.2 have one for the first kernel only.
    pub entries: Vec<CallbackEntry>,
}

/// A place inside one section.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Spot {
    section: usize,
    offset: u64,
}

impl CallbackTable {
    pub(crate) fn read(host: &HostObject) -> Option<CallbackTable> {
        let symbol = host.symbols.get(host.callbacks_symbol?)?;
        let SymbolPlace::Section(section) = symbol.place else { return None };
        let view = View::new(host);
        let table = Spot { section, offset: symbol.value };
        let entry_size = view.u64_at(table, 0x20)?;
        let array = view.pointer(table, 0x28)?;
        let stated = view.u64_at(table, 0x30)?;
        Some(CallbackTable {
            version: view.u64_at(table, 0)? as u32,
            entry_size,
            api_version: view.u64_at(table, 0x38)? as u32,
            on_pre_load: view.function(table, 0x40).map(|(name, _)| name),
            entries: view.entries(array, entry_size, stated),
        })
    }
}

/// A host object with its 64-bit absolute relocations and its functions by place.
struct View<'a> {
    host: &'a HostObject,
    pointers: HashMap<Spot, (usize, i64)>,
    functions: HashMap<Spot, usize>,
}

impl<'a> View<'a> {
    fn new(host: &'a HostObject) -> View<'a> {
        let absolute = host.relocations.iter().filter(|r| r.kind == RelocationKind::Absolute64);
        let pointers = absolute.map(|r| (Spot { section: r.section, offset: r.offset }, (r.symbol, r.addend)));
        let functions = host.symbols.iter().enumerate().filter_map(|(index, symbol)| match symbol.place {
            SymbolPlace::Section(section) if symbol.function => Some((Spot { section, offset: symbol.value }, index)),
            _ => None,
        });
        View { host, pointers: pointers.collect(), functions: functions.collect() }
    }

    fn u64_at(&self, spot: Spot, at: u64) -> Option<u64> {
        let offset = usize::try_from(spot.offset.checked_add(at)?).ok()?;
        reader::u64_at(self.host.sections.get(spot.section)?.data(&self.host.bytes), offset)
    }

    /// What the pointer at `spot + at` will point to.
    fn pointer(&self, spot: Spot, at: u64) -> Option<Spot> {
        let place = Spot { section: spot.section, offset: spot.offset.checked_add(at)? };
        let &(index, addend) = self.pointers.get(&place)?;
        let symbol = self.host.symbols.get(index)?;
        let SymbolPlace::Section(section) = symbol.place else { return None };
        Some(Spot { section, offset: symbol.value.checked_add_signed(addend)? })
    }

    /// Name and size of the function that the pointer at `spot + at` reaches, be it through its own symbol or through
    /// that of its section.
    fn function(&self, spot: Spot, at: u64) -> Option<(String, u64)> {
        let symbol = self.host.symbols.get(*self.functions.get(&self.pointer(spot, at)?)?)?;
        Some((symbol.name.clone(), symbol.size))
    }

    fn entries(&self, array: Spot, entry_size: u64, stated: u64) -> Vec<CallbackEntry> {
        let Some(section) = self.host.sections.get(array.section) else { return Vec::new() };
        let room = section.size.saturating_sub(array.offset);
        let count = room.checked_div(entry_size).unwrap_or(0).min(stated);
        // Names may overlap in a hostile object: together they are no longer than the object.
        let mut budget = self.host.bytes.len();
        let entry = |index: u64| {
            let entry = self.entry(array, index.checked_mul(entry_size)?)?;
            let callback = entry.on_arguments_change.as_ref().map_or(0, String::len);
            budget = budget.checked_sub(entry.kernel.len() + callback + 1)?;
            Some(entry)
        };
        (0..count).map_while(entry).collect()
    }

    fn entry(&self, array: Spot, at: u64) -> Option<CallbackEntry> {
        let name = self.pointer(array, at)?;
        let strings = self.host.sections.get(name.section)?.data(&self.host.bytes);
        let bytes = reader::c_string(strings, usize::try_from(name.offset).ok()?, 32 * 1024)?;
        let callback = self.function(array, at.checked_add(0x28)?);
        let size = callback.as_ref().map_or(0, |c| c.1);
        let kernel = String::from_utf8_lossy(bytes).into_owned();
        Some(CallbackEntry { kernel, on_arguments_change: callback.map(|c| c.0), size })
    }
}
