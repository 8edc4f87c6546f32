//! Images that are wrong in one chosen way: each refused in one line with the place and what was expected there.

mod committed;

use cubin_image::{Cubin, ErrorKind, Fatbin, ImageKind, Machine, Ptx, TileBytecode};

fn image(name: &str) -> Vec<u8> {
    std::fs::read(committed::folder().join(name)).unwrap()
}

fn refused(data: &[u8]) -> (ErrorKind, u64, String) {
    let error = Cubin::parse(data).expect_err("a broken cubin was taken");
    let line = error.to_string();
    assert_eq!(line.lines().count(), 1, "{line}");
    (error.kind, error.offset, line)
}

fn put(data: &mut [u8], at: u64, bytes: &[u8]) {
    data[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
}

#[test]
fn no_bytes() {
    let (kind, offset, line) = refused(&[]);
    assert_eq!((kind, offset), (ErrorKind::Empty, 0));
    assert_eq!(line, "at offset 0x0: expected an ELF file, found no bytes");
    assert_eq!(Fatbin::parse(&[]).unwrap_err().kind, ErrorKind::Empty);
    assert_eq!(Ptx::parse(&[]).unwrap_err().kind, ErrorKind::Empty);
    assert_eq!(TileBytecode::parse(&[]).unwrap_err().kind, ErrorKind::Empty);
}

#[test]
fn cut_to_its_header() {
    // Case A9 (c): 64 bytes are a whole ELF header whose section table lies elsewhere.
    let (kind, offset, line) = refused(&image("tile/add.sm_120.cubin")[..64]);
    assert_eq!((kind, offset), (ErrorKind::Truncated, 0x28));
    assert!(line.contains("section header table inside the file"), "{line}");
}

#[test]
fn zeroed_magic() {
    // Case A9 (d).
    let mut data = image("tile/add.sm_120.cubin");
    put(&mut data, 0, &[0; 4]);
    assert_eq!(ImageKind::detect(&data), ImageKind::Unknown);
    let (kind, offset, line) = refused(&data);
    assert_eq!((kind, offset), (ErrorKind::WrongForm, 0));
    assert!(line.contains("found 00 00 00 00"), "{line}");
}

#[test]
fn every_truncation_of_the_smallest_image() {
    let images = committed::images();
    let (_, image) = images.iter().filter(|(n, _)| n.ends_with("cubin")).min_by_key(|(_, i)| i.len()).unwrap();
    for length in 0..image.len() {
        let (_, offset, _) = refused(&image[..length]);
        assert!(offset <= image.len() as u64);
    }
}

#[test]
fn sections_outside_the_file() {
    let data = image("ptx/add.sm_120.cubin");
    let cubin = Cubin::parse(&data).unwrap();
    for section in cubin.sections.iter().filter(|s| s.in_file() && s.size > 0) {
        for lie in [data.len() as u64, u64::MAX, u64::MAX - section.size + 1] {
            let mut broken = data.clone();
            put(&mut broken, section.header_offset + 0x18, &lie.to_le_bytes());
            let (_, _, line) = refused(&broken);
            assert!(line.contains("expected"), "{line}");
        }
        let mut broken = data.clone();
        put(&mut broken, section.header_offset + 0x20, &u64::MAX.to_le_bytes());
        refused(&broken);
    }
}

#[test]
fn a_section_count_that_lies() {
    let mut data = image("tile/add.sm_120.cubin");
    put(&mut data, 0x3c, &u16::MAX.to_le_bytes());
    let (kind, offset, _) = refused(&data);
    assert_eq!((kind, offset), (ErrorKind::Truncated, 0x28));
}

#[test]
fn an_attribute_value_longer_than_its_section() {
    let mut data = image("ptx/add.sm_120.cubin");
    let info = Cubin::parse(&data).unwrap().section(".nv.info.repro_kernel").unwrap().clone();
    let at = data[info.offset as usize..].windows(2).position(|w| w == [4, 0x17]).unwrap() as u64 + info.offset;
    put(&mut data, at + 2, &u16::MAX.to_le_bytes());
    let (kind, offset, line) = refused(&data);
    assert_eq!((kind, offset), (ErrorKind::Truncated, at + 2), "{line}");
}

#[test]
fn a_host_object_of_another_machine_is_read_and_called_foreign() {
    let mut data = image("tile/add.sm_120.cubin");
    let host = Cubin::parse(&data).unwrap().host_object().unwrap().offset;
    put(&mut data, host + 18, &183u16.to_le_bytes());
    let cubin = Cubin::parse(&data).unwrap();
    let host = cubin.host_object().unwrap();
    assert_eq!(host.machine, Machine::Aarch64);
    assert_eq!(host.second_copy.map(|c| c.1), Some(false));
    if cfg!(target_arch = "x86_64") {
        let error = host.check_native().unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, host.offset + 18));
        assert!(error.to_string().contains("host code for x86-64, found a host object for aarch64"), "{error}");
    }
}

#[test]
fn a_host_relocation_outside_its_section() {
    let mut data = image("tile/add.sm_120.cubin");
    let cubin = Cubin::parse(&data).unwrap();
    let host = cubin.host_object().unwrap();
    let table = host.sections.iter().find(|s| s.raw_type == 4 && s.size > 0).unwrap();
    let at = host.offset + table.offset;
    put(&mut data, at, &u64::MAX.to_le_bytes());
    let (kind, offset, line) = refused(&data);
    assert_eq!((kind, offset), (ErrorKind::Malformed, at), "{line}");
    assert!(line.contains("a relocation inside its section"), "{line}");
}

#[test]
fn other_forms_are_told_apart() {
    let kind = |name: &str| ImageKind::detect(&image(name));
    assert_eq!(kind("tile/add.sm_90.cubin"), ImageKind::Cubin);
    assert_eq!(kind("other/add.fatbin"), ImageKind::Fatbin);
    assert_eq!(kind("other/add.ptx"), ImageKind::Ptx);
    assert_eq!(kind("other/add.tilebc"), ImageKind::TileBytecode);
    assert_eq!(ImageKind::detect(&[0x1f, 0x8b, 8]), ImageKind::Gzip);
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(ImageKind::detect(&program), ImageKind::ElfExecutableOrObject);
    assert_eq!(refused(&program).0, ErrorKind::WrongForm);
}

#[test]
fn many_sections_that_share_one_long_name_cost_no_more_than_the_file() {
    // 4,000 section headers, all named by the same 30,000 bytes: 120 MB of names if each were copied.
    let (count, name) = (4000u16, vec![b'x'; 30_000]);
    let mut data = image("ptx/add.sm_120.cubin")[..64].to_vec();
    data.push(0);
    data.extend_from_slice(&name);
    data.push(0);
    let table = data.len() as u64;
    put(&mut data, 0x28, &table.to_le_bytes());
    put(&mut data, 0x3c, &count.to_le_bytes());
    put(&mut data, 0x3e, &1u16.to_le_bytes());
    for _ in 0..count {
        let mut header = [0u8; 64];
        put(&mut header, 0, &1u32.to_le_bytes());
        put(&mut header, 4, &3u32.to_le_bytes());
        put(&mut header, 0x18, &64u64.to_le_bytes());
        put(&mut header, 0x20, &(name.len() as u64 + 2).to_le_bytes());
        data.extend_from_slice(&header);
    }
    let (kind, _, line) = refused(&data);
    assert_eq!(kind, ErrorKind::Malformed);
    assert!(line.contains("less than four times the file"), "{line}");
}

/// Found by fuzzing: a section without bytes may state any place at all.
#[test]
fn a_fatbin_section_without_bytes_at_the_end_of_all_addresses() {
    let mut data = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pair.o")).unwrap();
    assert_eq!(cubin_image::embedded_fatbins(&data).unwrap().len(), 2);
    let u16_at = |data: &[u8], at: usize| u64::from(u16::from_le_bytes(data[at..at + 2].try_into().unwrap()));
    let (table, count, names) = (data[0x28..0x30].to_vec(), u16_at(&data, 0x3c), u16_at(&data, 0x3e));
    let table = u64::from_le_bytes(table.try_into().unwrap());
    for index in (0..count).filter(|&index| index != names) {
        put(&mut data, table + 64 * index + 4, &8u32.to_le_bytes());
        put(&mut data, table + 64 * index + 0x18, &(u64::MAX - 2).to_le_bytes());
    }
    assert!(cubin_image::embedded_fatbins(&data).unwrap().is_empty());
}
