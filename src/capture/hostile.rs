//! Everything that capture reads may have been written by a broken or hostile child: nothing here may panic or go on for ever.

use super::host::HostCode;
use super::image::{Image, build_id};
use super::maps::Maps;
use super::memory::Memory;
use super::symbols::Symbols;
use super::unwind::{self, Process};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

/// A small program with full tables.
fn program() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| std::fs::read(victims::program("segv-thread")).unwrap())
}

fn cubin() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/cubins/tile/add.sm_80.cubin");
    BYTES.get_or_init(|| std::fs::read(path).unwrap())
}

/// A process whose memory is noise, and whose code lies all under one image's tables.
struct Noise {
    image: Arc<Image>,
    seed: u64,
}

impl Process for Noise {
    fn word(&self, address: u64) -> Option<u64> {
        let mut word = (address ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word ^= word >> 29;
        // Often an address in the program, so that walks go on for a while.
        (!word.is_multiple_of(17)).then_some(if word.is_multiple_of(3) { word } else { word % 0x4000 })
    }

    fn value(&self, address: u64, size: usize) -> Option<u64> {
        Some(self.word(address)? & (u64::MAX >> (64 - 8 * size.clamp(1, 8))))
    }

    fn before(&self, address: u64) -> Vec<u8> {
        vec![0xe8, address as u8, 0, 0, 0]
    }

    fn is_code(&self, address: u64) -> bool {
        address < 0x4000
    }

    fn tables(&self, address: u64) -> Option<(Arc<Image>, u64)> {
        self.is_code(address).then(|| (Arc::clone(&self.image), 0))
    }
}

fn changed(bytes: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &(at, value) in changes {
        let at = at % bytes.len();
        bytes[at] = value;
    }
    bytes
}

fn walk_in(image: Image, seed: u64) {
    let process = Noise { image: Arc::new(image), seed };
    let mut registers = [seed; 17];
    registers[super::registers::PC] = 0x1000 + seed % 0x1000;
    registers[super::registers::SP] = 0x7fff_0000;
    let (frames, end) = unwind::walk(&process, registers);
    assert!(!frames.is_empty() && frames.len() <= 256 && !end.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn maps_and_notes_of_noise(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let maps = Maps::parse(&bytes);
        let _ = (maps.find(0x1000), build_id(&bytes), Image::from_file(bytes.as_slice()));
    }

    #[test]
    fn walks_through_noise_by_sound_tables(seed in any::<u64>()) {
        walk_in(Image::from_file(program()).unwrap(), seed);
    }

    #[test]
    fn images_with_bytes_changed_anywhere(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..200),
        seed in any::<u64>(),
    ) {
        if let Some(image) = Image::from_file(changed(program(), &changes).as_slice()) {
            let _ = (image.function(seed % 0x4000), image.bias(seed, seed % 0x8000));
            walk_in(image, seed);
        }
    }

    #[test]
    fn images_with_headers_changed(
        changes in prop::collection::vec((0usize..1024, any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let mut bytes = changed(program(), &changes);
        let memory = Memory::of(std::process::id() as i32);
        if let Some(image) = Image::from_memory(&memory, bytes.as_ptr() as u64) {
            walk_in(image, seed);
        }
        bytes.truncate(cut.index(bytes.len() * 2).max(64));
        if let Some(image) = Image::from_file(bytes.as_slice()) {
            let _ = image.bias(seed, seed % 0x8000);
            walk_in(image, seed);
        }
    }

    #[test]
    fn host_code_with_bytes_changed(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..400)) {
        if let Some(code) = HostCode::of_cubin("changed", &changed(cubin(), &changes)) {
            let _ = (code.tables().function(0), code.size());
        }
    }

    #[test]
    fn symbols_of_changed_files(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..400)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), changed(program(), &changes)).unwrap();
        if let Some(symbols) = Symbols::from_file(file.path()) {
            let _ = (symbols.name(0x1100, None), symbols.name(u64::MAX, Some(0)));
        }
    }
}
