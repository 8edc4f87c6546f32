//! Fat binaries inside an ELF file of a host machine.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(found) = cubin_image::embedded_fatbins(data) else { return };
    for (_, fatbin) in &found {
        assert!(fatbin.range.end <= data.len() as u64);
    }
});
