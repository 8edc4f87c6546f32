//! Host objects of every compiler version lay out for an address: pointers of the callbacks table lead where they should.

mod committed;

use cubin_image::{Cubin, LinkedHost};

const BASE: u64 = 0x5000_0000_0000;

fn word(linked: &LinkedHost, at: usize) -> u64 {
    u64::from_le_bytes(linked.bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn tables_of_all_five_versions_point_into_their_own_parts() {
    let mut versions = 0;
    for (name, image) in committed::images() {
        let Ok(cubin) = Cubin::parse(&image) else { continue };
        let Some(host) = cubin.host_object().filter(|h| h.machine == cubin_image::Machine::X86_64) else { continue };
        versions += usize::from(name.contains("add.sm_120"));
        let linked = host.link_at(BASE).unwrap();
        assert_eq!(linked.bytes.len(), host.linked_size().unwrap(), "{name}");
        let on_pre_load = (word(&linked, linked.callbacks + 0x40) - BASE) as usize;
        assert!(linked.text.contains(&on_pre_load), "{name}");
        let array = (word(&linked, linked.callbacks + 0x28) - BASE) as usize;
        let (count, entries) = (word(&linked, linked.callbacks + 0x30), &host.callbacks.as_ref().unwrap().entries);
        assert_eq!(count as usize, entries.len(), "{name}");
        for (index, entry) in entries.iter().enumerate() {
            let at = array + 64 * index;
            let text = (word(&linked, at) - BASE) as usize;
            assert_eq!(&linked.bytes[text..text + entry.kernel.len() + 1], format!("{}\0", entry.kernel).as_bytes());
            assert!(linked.text.contains(&((word(&linked, at + 0x28) - BASE) as usize)), "{name}");
        }
    }
    assert_eq!(versions, 5, "add.sm_120 of five compiler versions");
}

#[test]
fn a_lying_memory_size_is_refused() {
    let mut image = std::fs::read(committed::folder().join("tile/add.sm_120.cubin")).unwrap();
    let cubin = Cubin::parse(&image).unwrap();
    let host = cubin.host_object().unwrap();
    let bss = host.sections.iter().find(|s| !s.in_file() && s.is_alloc()).unwrap();
    let at = (host.offset + bss.header_offset + 0x20) as usize;
    image[at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let error = Cubin::parse(&image).unwrap().host_object().unwrap().linked_size().unwrap_err();
    assert_eq!(error.offset, at as u64 - 0x20);
}
