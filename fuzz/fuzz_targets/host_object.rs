//! A host object on its own: read, and laid out for an address.
#![no_main]

use cubin_image::HostObject;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(host) = HostObject::parse(data, 0) else { return };
    for relocation in &host.relocations {
        assert!(relocation.section < host.sections.len() && relocation.symbol < host.symbols.len());
    }
    if let Ok(linked) = host.link_at(0x5000_0000_0000) {
        assert_eq!(linked.bytes.len(), host.linked_size().unwrap());
        assert!(linked.callbacks + 72 <= linked.bytes.len());
        assert_eq!(linked.bss.end, linked.bytes.len());
    }
});
