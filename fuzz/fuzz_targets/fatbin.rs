//! A fat binary, with its entries unpacked and looked into.
#![no_main]

use cubin_image::{Cubin, Fatbin};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(fatbin) = Fatbin::parse(data) else { return };
    for entry in &fatbin.entries {
        assert!(entry.data(data).len() <= data.len());
        // What a caller would budget as well: a Zstandard frame may stand for a great deal.
        if entry.unpacked_size <= 1 << 20
            && let Ok(image) = entry.unpack(data)
        {
            let _ = Cubin::parse(&image);
        }
    }
});
