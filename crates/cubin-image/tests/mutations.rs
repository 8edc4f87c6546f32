//! Broken images never panic the reader, make it loop, or make it allocate more than a small multiple of their size.
//!
//! Mutates the committed images, 24,000 times in all with a fixed seed. The allocator counts every byte asked for, so that
//! a size that an image merely states cannot become an allocation. One test only in this file: the count is the process's.

mod committed;

use cap::Cap;
use cubin_image::{Cubin, Fatbin, ImageKind, Ptx, TileBytecode, embedded_fatbins};
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const MUTATIONS: usize = 24_000;
/// Bytes that all readers together may ask for, per byte of the image. Section headers of 64 bytes become entries of 120 bytes and
/// a name; symbols of 24 bytes entries of 40 and 64.
const ALLOWED_FACTOR: usize = 24;
const ALLOWED_BASE: usize = 256 * 1024;

/// xorshift64*: the sequence depends on the seed alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Values that lie about sizes, counts and places.
const LIES: [u64; 12] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, u64::MAX / 2, u64::MAX - 7, u64::MAX];

fn mutate(image: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = image.to_vec();
    for _ in 0..=random.below(4) {
        if data.is_empty() {
            break;
        }
        let at = place(&data, random);
        match random.below(6) {
            0 => data[at] ^= 1 << random.below(8),
            1 => data[at] = random.next() as u8,
            2 => overwrite(&mut data, at, &LIES[random.below(LIES.len())].to_le_bytes()[..1 << random.below(4)]),
            3 => overwrite(&mut data, at, &(random.below(image.len() * 2) as u64).to_le_bytes()[..4]),
            4 => data.truncate(at),
            _ => {
                let (from, length) = (random.below(data.len()), 1 + random.below(96));
                let piece = data[from..(from + length).min(data.len())].to_vec();
                overwrite(&mut data, at, &piece);
            }
        }
    }
    data
}

/// A place to change: half of the time in the ELF header or the section table, where lies hurt most.
fn place(data: &[u8], random: &mut Random) -> usize {
    let table = data.get(0x28..0x30).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap()) as usize);
    match random.below(4) {
        0 => random.below(data.len().min(64)),
        1 if table < data.len() => table + random.below(data.len() - table),
        _ => random.below(data.len()),
    }
}

fn overwrite(data: &mut [u8], at: usize, bytes: &[u8]) {
    let end = (at + bytes.len()).min(data.len());
    data[at..end].copy_from_slice(&bytes[..end - at]);
}

/// Runs every reader over the bytes; says whether any of them took them.
fn read_all(data: &[u8]) -> bool {
    let mut read = false;
    if let Ok(cubin) = Cubin::parse(data) {
        read = true;
        cubin.compiler();
        cubin.languages();
        cubin.kernels.iter().for_each(|k| assert!(k.hidden_bytes() <= k.cbank_param_size));
        cubin.sections.iter().for_each(|s| assert!(s.data(data).len() <= data.len()));
        for relocation in cubin.host_object().iter().flat_map(|h| &h.relocations) {
            let host = cubin.host_object().unwrap();
            assert!(relocation.section < host.sections.len() && relocation.symbol < host.symbols.len());
        }
    }
    read |= Fatbin::parse(data).is_ok();
    read |= embedded_fatbins(data).is_ok();
    read |= Ptx::parse(data).is_ok();
    read |= TileBytecode::parse(data).is_ok();
    ImageKind::detect(data);
    read
}

#[test]
fn mutated_images_are_read_or_refused_within_bounds() {
    let images = committed::images();
    let (mut random, mut taken, mut slowest) = (Random(0x5eed_cafe_f00d_0001), 0, Duration::ZERO);
    for round in 0..MUTATIONS {
        let (name, image) = &images[round % images.len()];
        let data = mutate(image, &mut random);
        let (before, start) = (MEMORY.total_allocated(), Instant::now());
        taken += usize::from(read_all(&data));
        slowest = slowest.max(start.elapsed());
        let asked = MEMORY.total_allocated() - before;
        let allowed = data.len() * ALLOWED_FACTOR + ALLOWED_BASE;
        assert!(asked <= allowed, "{name}, round {round}: {asked} bytes allocated for {} of image", data.len());
    }
    // Both outcomes must occur, or the mutations test nothing.
    assert!(taken > MUTATIONS / 20 && taken < MUTATIONS * 19 / 20, "{taken} of {MUTATIONS} still readable");
    // A reader that loops over the same bytes again and again takes far longer than this for 160 KiB.
    assert!(slowest < Duration::from_secs(2), "slowest image took {slowest:?}");
}
