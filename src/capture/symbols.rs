//! Names of functions in an ELF file: all its symbols where it has them, else its exports.

use object::LittleEndian as Le;
use object::ReadCache;
use object::elf;
use object::read::elf::{FileHeader, Sym};
use std::fs::File;
use std::path::Path;

/// An address further than this behind the start of a symbol without a size has no name: in a stripped library the
/// nearest export is noise.
const NEAR: u64 = 256;

/// Symbols of functions, by address.
#[derive(Debug, Default)]
pub struct Symbols {
    /// `(address, size, offset of the name)`, by address.
    entries: Vec<(u64, u64, u32)>,
    names: Vec<u8>,
}

impl Symbols {
    /// Reads them from a file.
    pub fn from_file(path: &Path) -> Option<Symbols> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let data = &cache;
        let header = elf::FileHeader64::<Le>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let full = sections.symbols(endian, data, elf::SHT_SYMTAB).ok().filter(|table| !table.is_empty());
        let table = match full {
            Some(table) => table,
            None => sections.symbols(endian, data, elf::SHT_DYNSYM).ok()?,
        };
        let mut found = Symbols::default();
        let strings = table.strings();
        for symbol in table.iter() {
            if [elf::STT_FUNC, elf::STT_GNU_IFUNC].contains(&symbol.st_type())
                && symbol.st_value(endian) != 0
                && let Ok(name) = symbol.name(endian, strings)
            {
                found.add(symbol.st_value(endian), symbol.st_size(endian), name);
            }
        }
        found.sort();
        Some(found)
    }

    /// Made of `(address, size, name)`.
    pub fn from_list<'a>(list: impl IntoIterator<Item = (u64, u64, &'a str)>) -> Symbols {
        let mut symbols = Symbols::default();
        for (address, size, name) in list {
            symbols.add(address, size, name.as_bytes());
        }
        symbols.sort();
        symbols
    }

    fn add(&mut self, address: u64, size: u64, name: &[u8]) {
        let Ok(offset) = u32::try_from(self.names.len()) else { return };
        self.entries.push((address, size, offset));
        self.names.extend(name);
        self.names.push(0);
    }

    fn sort(&mut self) {
        self.entries.sort_by_key(|&(address, size, _)| (address, size));
    }

    /// The name of the function that covers `address`, demangled. `function` is its start, where that is known.
    ///
    /// A symbol names an address that its size covers, or that lies within 256 bytes of it, and never one in a function
    /// that begins after it.
    pub fn name(&self, address: u64, function: Option<u64>) -> Option<String> {
        let index = self.entries.partition_point(|entry| entry.0 <= address).checked_sub(1)?;
        let (start, size, offset) = self.entries[index];
        let distance = address - start;
        if function.is_some_and(|function| start < function) || (distance >= size && distance > NEAR) {
            return None;
        }
        let name = self.names.get(offset as usize..)?.split(|&byte| byte == 0).next()?;
        Some(demangle(&String::from_utf8_lossy(name)))
    }
}

/// A name as its author wrote it.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle()
    {
        return text;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_as_far_as_its_size_or_256_bytes() {
        let symbols = Symbols::from_list([(0x1000, 0x20, "a"), (0x2000, 0x1000, "b"), (0x5000, 0, "c")]);
        assert_eq!(symbols.name(0x1010, None).as_deref(), Some("a"));
        assert_eq!(symbols.name(0x1100, None).as_deref(), Some("a"));
        assert_eq!(symbols.name(0x1101, None), None);
        assert_eq!(symbols.name(0x2fff, None).as_deref(), Some("b"));
        assert_eq!(symbols.name(0x5101, None), None);
        assert_eq!(symbols.name(0xfff, None), None);
    }

    #[test]
    fn a_symbol_before_the_function_does_not_name_it() {
        let symbols = Symbols::from_list([(0x1000, 0, "export")]);
        assert_eq!(symbols.name(0x1090, Some(0x1080)), None);
        assert_eq!(symbols.name(0x1090, Some(0x1000)).as_deref(), Some("export"));
    }

    #[test]
    fn both_languages_are_demangled() {
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangle("cuLaunchKernel"), "cuLaunchKernel");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
    }
}
