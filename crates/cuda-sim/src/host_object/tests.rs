//! Host objects of tileiras 13.1 to 13.5, linked and called: what their callbacks write is compared with what was measured
//! on such images before (every byte that changes, and only behind the user's parameters).

use super::HostObject;
use crate::image::Image;
use cubin_image::Cubin;
use std::path::Path;

/// Size of a tensor descriptor, bytes.
const DESCRIPTOR: usize = 128;

struct Loaded {
    cubin: Cubin,
    image: Image,
    object: HostObject,
}

fn load(name: &str) -> Loaded {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cubins").join(name)).unwrap();
    let cubin = Cubin::parse(&bytes).unwrap();
    let image = Image::read_cubin(&bytes).unwrap();
    let object = HostObject::load(image.host.as_ref().unwrap(), &image, 1).unwrap();
    Loaded { cubin, image, object }
}

/// Parameters that make sense: pointers 16 MiB apart, 1024 for shapes and the row's stride, 1 for what follows.
fn parameters(kernel: &cubin_image::Kernel, background: u8) -> Vec<u8> {
    let mut buffer = vec![background; kernel.cbank_param_size as usize];
    let mut since_pointer = 0;
    for parameter in &kernel.parameters {
        let value: u64 = if parameter.size == 8 {
            since_pointer = 0;
            0x7f12_3456_0000 + u64::from(parameter.ordinal) * 0x100_0000
        } else {
            since_pointer += 1;
            if since_pointer <= 3 { 1024 } else { 1 }
        };
        let (at, size) = (usize::from(parameter.offset), parameter.size as usize);
        buffer[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    buffer
}

/// Offsets of the bytes that a callback writes: those that differ on either of two backgrounds.
fn written(loaded: &Loaded, kernel: usize) -> Vec<usize> {
    let mut changed = std::collections::BTreeSet::new();
    for background in [0xcc, 0x33] {
        let before = parameters(&loaded.cubin.kernels[kernel], background);
        let mut after = before.clone();
        // SAFETY: the object is mapped, and the buffer has the kernel's size.
        unsafe { loaded.object.arguments_change(kernel, &mut after) }.unwrap();
        changed.extend((0..before.len()).filter(|&at| before[at] != after[at]));
    }
    changed.into_iter().collect()
}

/// Where descriptors stand: the first on a multiple of 64 of the constant bank, the others right behind each other.
fn descriptors(kernel: &cubin_image::Kernel, each: usize) -> Vec<usize> {
    let (base, end) = (kernel.param_base.unwrap() as usize, kernel.user_param_bytes() as usize);
    let first = (base + end).next_multiple_of(64) - base;
    let count = (kernel.cbank_param_size as usize).saturating_sub(first) / DESCRIPTOR;
    (0..count).flat_map(|n| first + n * DESCRIPTOR..first + n * DESCRIPTOR + each).collect()
}

#[test]
fn add_kernels_of_every_compiler_have_a_callback_that_writes_nothing() {
    for name in [
        "tile-13.1/add.sm_120.cubin",
        "tile-13.2/add.sm_120.cubin",
        "tile-13.3/add.sm_120.cubin",
        "tile/add.sm_120.cubin",
        "tile-13.5/add.sm_120.cubin",
        "tile/add.sm_80.cubin",
        "tile/add.sm_90.cubin",
        "tile/add.sm_121.cubin",
    ] {
        let loaded = load(name);
        assert!(loaded.object.has_record(0), "{name}");
        assert_eq!(written(&loaded, 0), Vec::<usize>::new(), "{name}");
    }
}

#[test]
fn descriptors_are_written_behind_the_parameters_half_of_each_since_13_4() {
    for name in ["tile/matmul.sm_90.cubin", "tile/matmul.sm_100.cubin", "tile/matmul.sm_120.cubin"] {
        let loaded = load(name);
        let expected = descriptors(&loaded.cubin.kernels[0], 64);
        assert_eq!(expected.len(), 3 * 64, "{name}: three arrays");
        assert_eq!(written(&loaded, 0), expected, "{name}");
    }
    let first = |name| written(&load(name), 0)[0];
    assert_eq!((first("tile/matmul.sm_90.cubin"), first("tile/matmul.sm_100.cubin")), (0x70, 0x80));
}

#[test]
fn images_with_three_kernels_have_three_records_since_13_3_and_one_before() {
    for (name, records, each) in [
        ("tile-13.2/multi.sm_120.cubin", 1, 128),
        ("tile-13.3/multi.sm_120.cubin", 3, 128),
        ("tile/multi.sm_120.cubin", 3, 64),
    ] {
        let loaded = load(name);
        let kernels = loaded.image.kernels.len();
        assert_eq!((0..kernels).filter(|&kernel| loaded.object.has_record(kernel)).count(), records, "{name}");
        for kernel in (0..kernels).filter(|&kernel| loaded.object.has_record(kernel)) {
            let expected = descriptors(&loaded.cubin.kernels[kernel], each);
            assert_eq!(written(&loaded, kernel), expected, "{name}, kernel {kernel}");
        }
    }
}

#[test]
fn callbacks_of_many_threads_run_at_once_and_write_the_same() {
    let loaded = load("tile/matmul.sm_120.cubin");
    let alone = written(&loaded, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| assert_eq!(written(&loaded, 0), alone)));
        }
    });
}

#[test]
fn an_unmapped_object_leaves_nothing_behind() {
    let loaded = load("tile/add.sm_120.cubin");
    let code = loaded.object.code();
    assert!(is_mapped(code, 'x'));
    loaded.object.unmap();
    assert!(!is_mapped(code, 'x'));
}

/// Whether a mapping with this right covers an address.
fn is_mapped(address: usize, right: char) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        (number(start)..number(end)).contains(&address) && rest[..4].contains(right)
    })
}

#[test]
fn a_damaged_host_object_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cubins/tile/add.sm_120.cubin");
    let bytes = std::fs::read(path).unwrap();
    let object = Cubin::parse(&bytes).unwrap().host_object().unwrap().offset as usize;
    for (at, value, code) in [(18, 183, 801), (0, 0, 200), (40, 0xff, 200)] {
        let mut damaged = bytes.clone();
        damaged[object + at] = value;
        assert_eq!(Image::read_cubin(&damaged).err().map(|code| code.0), Some(code), "byte {at}");
    }
}
