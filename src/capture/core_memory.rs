//! Which pages of a process a debugger needs to show all threads with all libraries.

use super::maps::{Mapping, Maps};
use super::memory::{Memory, PAGE};
use super::registers::Registers;
use std::collections::{BTreeSet, HashSet};

/// Addresses of pages that are kept.
pub(super) type Pages = BTreeSet<u64>;

/// Pages kept at most: 4 MiB.
const MOST: usize = 1024;
/// Bytes of each thread's stack.
const STACK: u64 = 64 << 10;
/// Bytes of each other mapping at most.
const OTHER: u64 = 128 << 10;
/// Below the stack pointer a function may keep this many bytes.
const RED_ZONE: u64 = 128;
/// Libraries followed at most.
const MOST_LIBRARIES: usize = 1024;

/// Chooses them, the most telling first, until there is no more room.
pub(super) fn chosen_pages(maps: &Maps, memory: &Memory, threads: &[(i32, Registers)], auxv: &[u8]) -> Pages {
    let mut pages = Pages::new();
    for (_, registers) in threads.iter().take(1) {
        keep(&mut pages, maps, registers.pc().saturating_sub(PAGE), 3 * PAGE);
    }
    keep_loader_list(&mut pages, maps, memory, auxv);
    let first_pages = maps.0.iter().filter(|mapping| mapping.is_file() && mapping.offset == 0);
    first_pages.for_each(|mapping| keep(&mut pages, maps, mapping.start, PAGE));
    // Many threads share what there is for stacks.
    let share = (STACK * 32 / threads.len().max(1) as u64).clamp(8 << 10, STACK);
    for (_, registers) in threads {
        keep(&mut pages, maps, registers.sp().saturating_sub(RED_ZONE), share);
        keep(&mut pages, maps, registers.fs_base(), PAGE);
    }
    let whole = |mapping: &&Mapping| mapping.path == "[vdso]" || (mapping.execute && !mapping.is_file());
    maps.0.iter().filter(whole).for_each(|mapping| keep_start(&mut pages, maps, mapping));
    let data = |mapping: &&Mapping| mapping.is_file() && mapping.write && !mapping.shared;
    maps.0.iter().filter(data).for_each(|mapping| keep_start(&mut pages, maps, mapping));
    pages
}

fn keep_start(pages: &mut Pages, maps: &Maps, mapping: &Mapping) {
    keep(pages, maps, mapping.start, OTHER.min(mapping.end - mapping.start));
}

/// Keeps the pages of a range, as far as they lie in readable memory of one mapping.
fn keep(pages: &mut Pages, maps: &Maps, address: u64, length: u64) {
    let start = address & !(PAGE - 1);
    let end = address.saturating_add(length);
    let mut page = start;
    while page < end && pages.len() < MOST {
        // Never the journal or another shared mapping: those are kept elsewhere.
        if maps.find(page).is_some_and(|mapping| mapping.read && !mapping.shared && mapping.path != "[vvar]") {
            pages.insert(page);
        }
        page += PAGE;
    }
}

/// The loader's list of libraries, without which a debugger finds none: program headers, dynamic section, `r_debug`, and
/// each `link_map` with its name.
fn keep_loader_list(pages: &mut Pages, maps: &Maps, memory: &Memory, auxv: &[u8]) {
    const AT_PHDR: u64 = 3;
    const AT_PHNUM: u64 = 5;
    let (Some(headers), Some(count)) = (auxiliary(auxv, AT_PHDR), auxiliary(auxv, AT_PHNUM)) else { return };
    keep(pages, maps, headers, count.min(64) * 56);
    let Some((dynamic, length)) = dynamic_section(memory, headers, count.min(64)) else { return };
    keep(pages, maps, dynamic, length);
    let Some(debug) = debug_entry(memory, dynamic, length) else { return };
    keep(pages, maps, debug, 40);
    let mut seen = HashSet::new();
    let mut map = memory.word(debug.wrapping_add(8)).unwrap_or(0);
    while map != 0 && seen.insert(map) && seen.len() <= MOST_LIBRARIES {
        keep(pages, maps, map, 40);
        if let Some(name) = memory.word(map.wrapping_add(8)) {
            keep(pages, maps, name, 256);
        }
        if let Some(dynamic) = memory.word(map.wrapping_add(16)) {
            keep(pages, maps, dynamic, 1024);
        }
        map = memory.word(map.wrapping_add(24)).unwrap_or(0);
    }
}

fn auxiliary(auxv: &[u8], wanted: u64) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
    let mut pairs = auxv.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
    pairs.find(|(name, _)| *name == Some(wanted))?.1
}

/// Address and length of the program's dynamic section, from its headers in memory.
fn dynamic_section(memory: &Memory, headers: u64, count: u64) -> Option<(u64, u64)> {
    const PT_DYNAMIC: u64 = 2;
    const PT_PHDR: u64 = 6;
    let header = |index: u64, at: u64| memory.word(headers.wrapping_add(index * 56 + at));
    let kind = |index: u64| header(index, 0).map(|word| word & 0xffff_ffff);
    let of_kind = |wanted| (0..count).find(|&index| kind(index) == Some(wanted));
    let bias = match of_kind(PT_PHDR) {
        Some(index) => headers.wrapping_sub(header(index, 16)?),
        None => 0,
    };
    let dynamic = of_kind(PT_DYNAMIC)?;
    Some((header(dynamic, 16)?.wrapping_add(bias), header(dynamic, 40)?.min(64 << 10)))
}

fn debug_entry(memory: &Memory, dynamic: u64, length: u64) -> Option<u64> {
    const DT_DEBUG: u64 = 21;
    let mut entries = (0..length / 16).map(|index| dynamic.wrapping_add(index * 16));
    let entry = entries.find(|&entry| memory.word(entry) == Some(DT_DEBUG))?;
    memory.word(entry.wrapping_add(8)).filter(|&debug| debug != 0)
}
