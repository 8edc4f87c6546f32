//! Fat binaries that nvcc 13.4.92 made of `data/pair.cu`, packed in each way that it knows:
//!
//! `nvcc -gencode arch=compute_90,code=[sm_90,compute_90] -gencode arch=compute_120,code=sm_120 --compress-mode=size|speed
//! -fatbin`, and `nvcc --enable-tile -std=c++20 -arch=sm_90 -c` for the object, which has a Tile half as well.

#[allow(dead_code)] // the folder alone is used here
mod committed;

use cubin_image::{Compression, Cubin, ErrorKind, Fatbin, FatbinKind, ImageKind, Ptx, TileBytecode, embedded_fatbins};
use std::path::Path;

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// Every entry unpacks to an image of the kind that it states, for its architecture.
fn check(fatbin: &Fatbin, file: &[u8]) {
    for entry in &fatbin.entries {
        let image = entry.unpack(file).unwrap();
        match entry.kind {
            FatbinKind::Cubin => assert_eq!(Cubin::parse(&image).unwrap().arch, entry.arch),
            FatbinKind::Ptx => assert_eq!(Ptx::parse(&image).unwrap().arch(), Some(entry.arch)),
            FatbinKind::TileBytecode => assert_eq!(TileBytecode::parse(&image).unwrap().version, (13, 4)),
            FatbinKind::Other(number) => panic!("kind {number}"),
        }
    }
}

#[test]
fn zstandard_lz4_and_plain_entries() {
    let packings = |name: &str| {
        let file = data(name);
        let fatbin = Fatbin::parse(&file).unwrap();
        check(&fatbin, &file);
        fatbin.entries.iter().map(|e| (e.kind, e.compression)).collect::<Vec<_>>()
    };
    use Compression::{Lz4, None, Zstd};
    use FatbinKind::{Cubin, Ptx};
    assert_eq!(packings("size.fatbin"), [(Cubin, Zstd), (Ptx, Zstd), (Cubin, Zstd)]);
    assert_eq!(packings("speed.fatbin"), [(Cubin, None), (Ptx, Lz4), (Cubin, None)]);
}

#[test]
fn the_committed_container() {
    let file = std::fs::read(committed::folder().join("other/add.fatbin")).unwrap();
    check(&Fatbin::parse(&file).unwrap(), &file);
}

#[test]
fn an_object_with_a_simt_half_and_a_tile_half() {
    let file = data("pair.o");
    assert_eq!(ImageKind::detect(&file), ImageKind::ElfExecutableOrObject);
    let found = embedded_fatbins(&file).unwrap();
    assert_eq!(found.len(), 2);
    found.iter().for_each(|(_, fatbin)| check(fatbin, &file));
    let tile = |fatbin: &Fatbin| {
        let first = fatbin.entries[0].unpack(&file).unwrap();
        (Cubin::parse(&first).unwrap().is_tile(), fatbin.entries[1].kind)
    };
    assert_eq!(tile(&found[0].1), (false, FatbinKind::Ptx));
    assert_eq!(tile(&found[1].1), (true, FatbinKind::TileBytecode));
}

#[test]
fn a_stated_size_is_no_reason_to_allocate() {
    for (name, entry) in [("size.fatbin", 0), ("speed.fatbin", 1)] {
        let mut file = data(name);
        let at = Fatbin::parse(&file).unwrap().entries[entry].offset as usize + 56;
        file[at..at + 8].copy_from_slice(&(200u64 << 20).to_le_bytes());
        let error = Fatbin::parse(&file).unwrap().entries[entry].unpack(&file).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{error}");
        file[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = Fatbin::parse(&file).unwrap().entries[entry].unpack(&file).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, at as u64));
    }
}

/// `cubins/src/multi.py`, written by cuda-tile 1.7.0 (`export.py`, sm_120) in each version of the bytecode that it knows.
#[test]
fn bytecode_names_its_kernels_and_their_parameters() {
    for version in 1..=4u8 {
        let code = TileBytecode::parse(&data(&format!("bytecode/multi-13.{version}.tilebc"))).unwrap();
        assert_eq!((code.version, code.complete), ((13, version), true));
        let names: Vec<&str> = code.kernels.iter().map(|k| k.name.as_str()).collect();
        assert_eq!(names, ["multi_a", "multi_b", "multi_c"]);
        for kernel in &code.kernels {
            let parameters = kernel.parameters.as_ref().unwrap();
            let pointers: Vec<u32> =
                parameters.iter().filter(|p| p.pointer == cubin_image::Pointer::Sure).map(|p| p.offset).collect();
            assert_eq!((parameters.len(), pointers, kernel.user_param_bytes()), (8, vec![0, 0x18], 0x28));
        }
    }
    let file = std::fs::read(committed::folder().join("other/add.tilebc")).unwrap();
    assert_eq!(TileBytecode::parse(&file).unwrap().kernels[0].name, "repro_kernel");
}
