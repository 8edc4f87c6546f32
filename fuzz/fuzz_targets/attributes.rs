//! The records of a `.nv.info` section.
#![no_main]

use cubin_image::Attributes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut read = 0;
    for record in Attributes::new(data).map_while(Result::ok) {
        record.words().for_each(drop);
        read += 1;
    }
    assert!(read <= data.len() / 4);
});
