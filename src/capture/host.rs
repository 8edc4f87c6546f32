//! Host code of a Tile image in a process: known by its bytes, placed by its mapping's history, walked by its own tables.
//!
//! Where the driver puts an object, and what it links it against, is its own affair; so the bytes of the code are compared
//! with those fields left out that relocation changes.

use super::ExecLog;
use super::image::{Image, Segment};
use super::maps::Mapping;
use super::memory::{Memory, PAGE};
use super::symbols::Symbols;
use crate::evidence::ExecutableMapping;
use cubin_image::{Cubin, HostObject, Machine, RelocationKind, SymbolPlace};
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Fewest bytes that must agree, those that relocation changes not counted.
const FEWEST: usize = 16;
/// Where the tables lie in the object's own terms; its code lies at 0.
const TABLES: u64 = 1 << 32;
/// Code larger than this is not searched for, bytes.
const LARGEST: usize = 1 << 20;

/// Host code of one image.
#[derive(Clone, Debug)]
pub struct HostCode {
    /// The image that it came with.
    pub image_name: String,
    code: Vec<u8>,
    /// Bytes that relocation changes.
    relocated: Vec<bool>,
    /// Name, start and size of its functions.
    functions: Vec<(String, u64, u64)>,
    /// Offsets at which an instruction begins.
    boundaries: BTreeSet<u64>,
    tables: Arc<Image>,
}

/// Host code found in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Address of its first byte.
    pub(super) base: u64,
    /// Bytes around the address that agree.
    pub(super) agreeing: usize,
}

impl HostCode {
    /// The host code of a cubin, where it has some for this machine.
    pub fn of_cubin(image_name: &str, bytes: &[u8]) -> Option<HostCode> {
        let cubin = Cubin::parse(bytes).ok()?;
        let host = cubin.host_object().filter(|host| host.machine == Machine::X86_64)?;
        let code_sections = host.sections.iter().enumerate().filter(|(_, s)| s.is_alloc() && s.is_executable());
        let (index, section) = code_sections.max_by_key(|(_, section)| section.size)?;
        let code = section.data(&host.bytes).to_vec();
        if code.len() < FEWEST || code.len() > LARGEST {
            return None;
        }
        let mut relocated = vec![false; code.len()];
        for relocation in host.relocations.iter().filter(|relocation| relocation.section == index) {
            let width = if matches!(relocation.kind, RelocationKind::Other(_)) { 4 } else { 8 };
            let start = usize::try_from(relocation.offset).ok()?.min(code.len());
            relocated[start..start.saturating_add(width).min(code.len())].fill(true);
        }
        let functions = functions(host, index);
        let boundaries = boundaries(&code, &functions);
        let tables = Arc::new(tables(host, index, code.len() as u64, &functions));
        Some(HostCode { image_name: image_name.to_owned(), code, relocated, functions, boundaries, tables })
    }

    /// Its call frame information, in terms of its own offsets.
    pub(super) fn tables(&self) -> Arc<Image> {
        Arc::clone(&self.tables)
    }

    /// Size of its code, bytes.
    pub(super) fn size(&self) -> u64 {
        self.code.len() as u64
    }

    /// Looks for it around an address in executable memory.
    pub(super) fn find(&self, memory: &Memory, mapping: &Mapping, address: u64) -> Option<Match> {
        let reach = self.size();
        let start = address.saturating_sub(reach).max(mapping.start);
        let end = address.saturating_add(reach).min(mapping.end);
        let bytes = memory.bytes(start, (end - start) as usize);
        let at = (address - start) as usize;
        let agreeing = |offset: usize| self.agreeing(offset, &bytes, at);
        let best = (0..self.code.len()).map(|offset| (agreeing(offset), offset)).max_by_key(|(count, _)| *count)?;
        let (agreeing, offset) = best;
        (agreeing >= FEWEST).then(|| Match { base: address.wrapping_sub(offset as u64), agreeing })
    }

    /// Bytes that agree without a gap around `bytes[at]`, if that is where the code's `offset` lies. Code that is one byte
    /// over and over agrees with nothing.
    fn agreeing(&self, offset: usize, bytes: &[u8], at: usize) -> usize {
        let same = |code: usize, memory: usize| self.relocated[code] || self.code[code] == bytes[memory];
        let before = (1..=offset.min(at)).take_while(|n| same(offset - n, at - n)).count();
        let room = (self.code.len() - offset).min(bytes.len().saturating_sub(at));
        let after = (0..room).take_while(|n| same(offset + n, at + n)).count();
        if after == 0 {
            return 0;
        }
        let run = offset - before..offset + after;
        let first = self.code[run.start];
        let varied = self.code[run.clone()].iter().any(|&byte| byte != first);
        if varied { run.filter(|&index| !self.relocated[index]).count() } else { 0 }
    }

    /// The function that an offset lies in, and how far.
    fn name(&self, offset: u64) -> Option<String> {
        let inside = |(_, start, size): &&(String, u64, u64)| (*start..start.saturating_add(*size)).contains(&offset);
        self.functions.iter().find(inside).map(|(name, start, _)| format!("{name}+{:#x}", offset - start))
    }

    /// Whether a mapping that is gone can have been this code, with `address` at one of its instructions. In words.
    fn explains(&self, mapping: &ExecutableMapping, address: u64) -> Option<String> {
        let anonymous = mapping.name == "//anon" || mapping.name.starts_with("/memfd:");
        if !anonymous || mapping.length < self.size() {
            return None;
        }
        let exact = mapping.length == self.size().next_multiple_of(PAGE);
        let inside = address - mapping.start;
        // The kernel joins neighbouring areas and logs them as one: then this code may begin at any of its pages.
        let offset = if exact { Some(inside) } else { self.offset_on_a_page(inside) };
        let offset = offset.filter(|offset| self.boundaries.contains(offset))?;
        let size = if exact { "exactly the size of that code" } else { "that code and its neighbours at once" };
        let name = self.name(offset).unwrap_or_else(|| format!("offset {offset:#x}"));
        Some(format!(
            "host code of {} was mapped here: thread {} made {:#x}+{:#x} executable, {size}, and the address is its {name}; \
             nothing is mapped there now",
            self.image_name, mapping.tid, mapping.start, mapping.length
        ))
    }

    /// The first instruction of this code that has the page offset of an address this far inside a joined mapping.
    fn offset_on_a_page(&self, inside: u64) -> Option<u64> {
        let pages = (0..self.size()).step_by(PAGE as usize);
        pages.map(|page| page + inside % PAGE).filter(|offset| *offset <= inside).find(|o| self.boundaries.contains(o))
    }

    /// Whether an unmapped address has the page offset of one of its callbacks. In words.
    fn resembles(&self, address: u64) -> Option<String> {
        let same_page_offset = |start: u64| start % PAGE == address % PAGE;
        let callbacks = self.functions.iter().filter(|(name, ..)| name.contains("ON_ARGUMENTS_CHANGE"));
        let (name, ..) = callbacks.into_iter().find(|(_, start, _)| same_page_offset(*start))?;
        Some(format!(
            "inferred: executable mappings were not logged, but the page offset is that of {name} in the host code of {}",
            self.image_name
        ))
    }
}

/// Which image's host code was mapped at an address where nothing is mapped now, if any. In words.
pub(super) fn was_host_code(codes: &[HostCode], log: Option<&ExecLog>, address: u64) -> Option<String> {
    match log {
        Some(log) => {
            let mapping = log.covering(address);
            let complete = log.lost() == 0;
            let explained = mapping.and_then(|mapping| codes.iter().find_map(|code| code.explains(&mapping, address)));
            explained.or_else(|| codes.iter().find_map(|code| code.resembles(address)).filter(|_| !complete))
        }
        None => codes.iter().find_map(|code| code.resembles(address)),
    }
}

fn functions(host: &HostObject, section: usize) -> Vec<(String, u64, u64)> {
    let of_section = host.symbols.iter().filter(|symbol| symbol.place == SymbolPlace::Section(section));
    let functions = of_section.filter(|symbol| symbol.function && symbol.size > 0);
    functions.map(|symbol| (symbol.name.clone(), symbol.value, symbol.size)).collect()
}

fn boundaries(code: &[u8], functions: &[(String, u64, u64)]) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for (_, start, size) in functions {
        let Some(body) = code.get(*start as usize..).map(|rest| &rest[..rest.len().min(*size as usize)]) else {
            continue;
        };
        let decoder = Decoder::with_ip(64, body, *start, DecoderOptions::NONE);
        found.extend(decoder.into_iter().map(|instruction| instruction.ip()));
    }
    found
}

/// The object's call frame information, relocated to its own offsets.
fn tables(host: &HostObject, code: usize, size: u64, functions: &[(String, u64, u64)]) -> Image {
    let found = host.sections.iter().enumerate().find(|(_, section)| section.name == ".eh_frame");
    let mut bytes = found.map_or(Vec::new(), |(_, section)| section.data(&host.bytes).to_vec());
    let index = found.map(|(index, _)| index);
    for relocation in host.relocations.iter().filter(|relocation| Some(relocation.section) == index) {
        let symbol = &host.symbols[relocation.symbol];
        if symbol.place != SymbolPlace::Section(code) {
            continue;
        }
        let target = symbol.value.wrapping_add_signed(relocation.addend);
        let place = TABLES + relocation.offset;
        let (value, width) = match relocation.kind {
            RelocationKind::Absolute64 => (target, 8),
            RelocationKind::Relative64 => (target.wrapping_sub(place), 8),
            // R_X86_64_PC32.
            RelocationKind::Other(2) => (target.wrapping_sub(place), 4),
            _ => continue,
        };
        let field = usize::try_from(relocation.offset).ok().and_then(|start| bytes.get_mut(start..)?.get_mut(..width));
        if let Some(field) = field {
            field.copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }
    let segment = Segment { address: 0, offset: 0, file_size: size, memory_size: size, execute: true };
    let symbols = Symbols::from_list(functions.iter().map(|(name, start, size)| (*start, *size, name.as_str())));
    Image::from_parts(vec![segment], (TABLES, bytes), symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_code(image: &str) -> HostCode {
        let path = format!("{}/cubins/{image}", env!("CARGO_MANIFEST_DIR"));
        HostCode::of_cubin(image, &std::fs::read(path).unwrap()).unwrap()
    }

    fn mapping(start: u64, length: u64, name: &str) -> ExecutableMapping {
        ExecutableMapping { at_ns: 1, tid: 7, start, length, name: name.to_owned() }
    }

    #[test]
    fn every_compilers_object_has_tables_for_each_of_its_functions() {
        for folder in ["tile", "tile-13.1", "tile-13.2", "tile-13.3", "tile-13.5"] {
            let code = host_code(&format!("{folder}/add.sm_120.cubin"));
            assert!(code.functions.len() >= 2, "{folder}");
            for (name, start, size) in &code.functions {
                assert_eq!(code.tables.function(start + size / 2), Some(*start), "{folder} {name}");
                assert_eq!(code.tables.symbol(start + 1, None, None).as_deref(), Some(name.as_str()));
                assert!(code.boundaries.contains(start));
            }
        }
    }

    #[test]
    fn a_regular_image_has_no_host_code() {
        let path = format!("{}/cubins/ptx/add.sm_120.cubin", env!("CARGO_MANIFEST_DIR"));
        assert!(HostCode::of_cubin("regular", &std::fs::read(path).unwrap()).is_none());
        assert!(HostCode::of_cubin("noise", &[7; 100]).is_none());
    }

    #[test]
    fn code_is_found_wherever_it_lies_and_whatever_relocation_made_of_it() {
        let code = host_code("tile/add.sm_120.cubin");
        let mut linked = vec![0u8; 3 * PAGE as usize];
        let skew = 640;
        for (index, &byte) in code.code.iter().enumerate() {
            linked[skew + index] = if code.relocated[index] { 0x77 } else { byte };
        }
        let start = linked.as_ptr() as u64;
        let here = Mapping {
            start,
            end: start + linked.len() as u64,
            read: true,
            write: false,
            execute: true,
            shared: false,
            offset: 0,
            inode: 0,
            path: String::new(),
        };
        let memory = Memory::of(std::process::id() as i32);
        for offset in [0, 1, code.size() / 2, code.size() - 1] {
            let found = code.find(&memory, &here, start + skew as u64 + offset).unwrap();
            assert_eq!(found.base, start + skew as u64, "{offset:#x}");
        }
        assert!(code.find(&memory, &here, start + skew as u64 + code.size() + 64).is_none());
        let other = host_code("tile-13.1/add.sm_120.cubin");
        let at = start + skew as u64 + 2;
        let own = code.find(&memory, &here, at).unwrap().agreeing;
        assert!(other.find(&memory, &here, at).is_none_or(|found| found.agreeing < own), "another compiler's code");
    }

    #[test]
    fn a_mapping_that_is_gone_is_explained_by_size_name_and_instruction() {
        let code = host_code("tile/add.sm_120.cubin");
        let callback = code.functions.iter().find(|(name, ..)| name.contains("ON_ARGUMENTS_CHANGE")).unwrap().1;
        let pages = code.size().next_multiple_of(PAGE);
        let base = 0x7f00_0000_0000;
        let words = code.explains(&mapping(base, pages, "//anon"), base + callback).unwrap();
        assert!(words.contains("exactly the size") && words.contains("ON_ARGUMENTS_CHANGE"), "{words}");
        assert!(code.explains(&mapping(base, pages, "/usr/lib/libx.so"), base + callback).is_none());
        assert!(code.explains(&mapping(base, code.size() - 1, "//anon"), base + callback).is_none());
        assert!(code.explains(&mapping(base, pages, "//anon"), base + pages - 1).is_none());
        let joined = mapping(base, 3 * pages, "//anon");
        let words = code.explains(&joined, base + 2 * pages + callback).unwrap();
        assert!(words.contains("its neighbours") && words.contains("ON_ARGUMENTS_CHANGE"), "{words}");
        assert!(code.explains(&joined, base + 2 * pages + pages - 1).is_none());
        assert!(code.resembles(base + callback).unwrap().starts_with("inferred"));
        assert!(code.resembles(base + callback + 1).is_none());
    }
}
