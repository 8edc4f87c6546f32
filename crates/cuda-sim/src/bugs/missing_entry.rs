//! Entry points that the library does not export, as an older one would not.
//!
//! The names are struck out of the library's own dynamic symbol table when it is loaded, so that `dlsym` does not find
//! them. A program that was linked against the library has them resolved before that.
#![allow(unsafe_code)] // edits this library's own symbol table

use super::{Bug, Plan, active};
use std::ffi::CStr;

/// This bug.
pub const PLAN: Plan = Plan {
    name: "missing-entry",
    text: "entry points that are not exported: neither dlsym nor cuGetProcAddress finds them",
    owner: "environment",
    kind: "api_error",
    keys: &[("entry", "their names, joined by '+'")],
    plant: |setting| {
        let names: Vec<String> =
            setting.text("entry").unwrap_or("").split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.is_empty() {
            return Err("missing-entry wants entry=NAME[+NAME...]".to_owned());
        }
        Ok(Bug::MissingEntry(MissingEntry { names }))
    },
};

/// The bug's keys.
pub struct MissingEntry {
    names: Vec<String>,
}

impl MissingEntry {
    /// Whether this symbol is missing.
    pub fn names(&self, symbol: &str) -> bool {
        self.names.iter().any(|name| name == symbol)
    }
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        if let Bug::MissingEntry(bug) = active() {
            // SAFETY: the library is being loaded; no one looks symbols up in it yet.
            unsafe { strike_out(bug) };
        }
    }
    at_load
};

unsafe fn strike_out(bug: &MissingEntry) {
    // SAFETY: this function lies in the library, so dladdr1 finds its link map, whose dynamic section is the loader's.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let mut map: *mut LinkMap = std::ptr::null_mut();
        let here = strike_out as *const std::ffi::c_void;
        const RTLD_DL_LINKMAP: i32 = 2;
        if dladdr1(here, &mut info, (&raw mut map).cast(), RTLD_DL_LINKMAP) == 0 || map.is_null() {
            return;
        }
        let (mut symbols, mut strings) = (0u64, 0u64);
        let mut entry = (*map).dynamic;
        const DT_STRTAB: u64 = 5;
        const DT_SYMTAB: u64 = 6;
        while (*entry).tag != 0 {
            match (*entry).tag {
                DT_STRTAB => strings = (*entry).value,
                DT_SYMTAB => symbols = (*entry).value,
                _ => {}
            }
            entry = entry.add(1);
        }
        // The linker puts the strings right behind the symbols, or the versions: the first of them bounds the walk.
        if symbols != 0 && strings > symbols {
            strike_names(bug, symbols as *mut Symbol, strings as *const std::ffi::c_char);
        }
    }
}

unsafe fn strike_names(bug: &MissingEntry, symbols: *mut Symbol, strings: *const std::ffi::c_char) {
    let length = strings as usize - symbols as usize;
    let count = length / size_of::<Symbol>();
    let start = symbols as usize & !4095;
    let end = (symbols as usize + length).next_multiple_of(4096);
    // SAFETY: the table belongs to this library; its pages are made writable while names are struck out.
    unsafe {
        if libc::mprotect(start as *mut _, end - start, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return;
        }
        for symbol in std::slice::from_raw_parts_mut(symbols, count) {
            const FUNCTION: u8 = 2;
            if symbol.info & 0xf != FUNCTION || symbol.section == 0 {
                continue;
            }
            let name = CStr::from_ptr(strings.add(symbol.name as usize));
            if name.to_str().is_ok_and(|name| bug.names(name)) {
                (symbol.section, symbol.value) = (0, 0);
            }
        }
        libc::mprotect(start as *mut _, end - start, libc::PROT_READ);
    }
}

/// The head of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    address: u64,
    name: *const std::ffi::c_char,
    dynamic: *const Dynamic,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

unsafe extern "C" {
    fn dladdr1(
        address: *const std::ffi::c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut std::ffi::c_void,
        flags: i32,
    ) -> i32;
}
