//! Tile IR bytecode.
#![no_main]

use cubin_image::TileBytecode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = TileBytecode::parse(data);
});
