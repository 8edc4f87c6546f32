//! `cuGetProcAddress`: entry points by name and version.

use super::{
    Entry, context, device, entries, error, event, function, init, launch, library, memory, module, put, stream,
};
use crate::bugs;
use crate::error::Code;
use std::ffi::{CStr, c_char, c_int, c_void};

/// All entry points, file by file.
fn all() -> impl Iterator<Item = &'static Entry> {
    [
        init::TABLE,
        error::TABLE,
        device::TABLE,
        context::TABLE,
        memory::TABLE,
        module::TABLE,
        function::TABLE,
        launch::TABLE,
        stream::TABLE,
        event::TABLE,
        library::TABLE,
        TABLE,
    ]
    .into_iter()
    .flatten()
}

/// Names of all exported entry points.
pub fn symbols() -> impl Iterator<Item = &'static str> {
    all().map(|entry| entry.symbol)
}

/// What became of a search (`CUdriverProcAddressQueryResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
enum Outcome {
    Found = 0,
    NoSymbol = 1,
    NewerVersionOnly = 2,
}

/// The newest entry point of that name that a program written for `version` may use. A name with its version suffix is
/// found as it stands.
fn search(name: &str, version: c_int) -> (Option<&'static Entry>, Outcome) {
    let there = || all().filter(|entry| !bugs::is_missing(entry.symbol));
    let mut known = false;
    let mut best: Option<&Entry> = None;
    for entry in there().filter(|entry| entry.base == name || entry.symbol == name) {
        known = true;
        if entry.since <= version && best.is_none_or(|found| found.since < entry.since) {
            best = Some(entry);
        }
    }
    match (best, known) {
        (Some(_), _) => (best, Outcome::Found),
        (None, true) => (None, Outcome::NewerVersionOnly),
        (None, false) => (None, Outcome::NoSymbol),
    }
}

unsafe fn answer(name: *const c_char, out: *mut *const c_void, version: c_int) -> Result<Outcome, Code> {
    if name.is_null() || out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: by the C caller.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Code::INVALID_VALUE)?;
    let (found, outcome) = search(name, version);
    // SAFETY: as above.
    unsafe { put(out, found.map_or(std::ptr::null(), |entry| entry.address.cast())) }?;
    Ok(outcome)
}

entries! {
    cuGetProcAddress = "cuGetProcAddress" since 11030 (name: *const c_char, out: *mut *const c_void, version: c_int, flags: u64) {
        let _ = flags;
        match answer(name, out, version)? {
            Outcome::Found => Ok(()),
            _ => Err(Code::NOT_FOUND),
        }
    }

    cuGetProcAddress_v2 = "cuGetProcAddress" since 12000 (
        name: *const c_char, out: *mut *const c_void, version: c_int, flags: u64, status: *mut c_int,
    ) {
        let _ = flags;
        let outcome = answer(name, out, version)?;
        if !status.is_null() {
            put(status, outcome as c_int)?;
        }
        // Without a place for the status a failed search is an error.
        if outcome == Outcome::Found || !status.is_null() { Ok(()) } else { Err(Code::NOT_FOUND) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_chooses_among_entries_of_one_name() {
        let symbol = |name, version| search(name, version).0.map(|entry| entry.symbol);
        assert_eq!(symbol("cuCtxCreate", 11_000), Some("cuCtxCreate_v2"));
        assert_eq!(symbol("cuCtxCreate", 12_000), Some("cuCtxCreate_v3"));
        assert_eq!(symbol("cuCtxCreate", 13_000), Some("cuCtxCreate_v4"));
        assert_eq!(symbol("cuMemAlloc", 13_000), Some("cuMemAlloc_v2"));
        assert_eq!(search("cuLibraryLoadData", 11_000).1, Outcome::NewerVersionOnly);
        assert_eq!(search("cuNoSuchThing", 13_000).1, Outcome::NoSymbol);
    }
}
