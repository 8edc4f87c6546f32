//! PTX text.
#![no_main]

use cubin_image::Ptx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(ptx) = Ptx::parse(data) else { return };
    ptx.arch();
    assert!(ptx.entries.iter().map(|entry| entry.param_bytes()).count() <= data.len());
});
