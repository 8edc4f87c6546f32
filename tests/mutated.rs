//! What the tool does with broken images beyond reading them: inspecting, deriving variants, telling facts to a run. None of
//! it may panic, whatever the bytes.

use cubin_stress::cubin::inspection::{differences, inspect, print_image};
use cubin_stress::cubin::tools::Tools;
use cubin_stress::cubin::variants::{Subject, VariantRecord, make_all};
use cubin_stress::cubin::{Image, NoProbe};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::path::{Path, PathBuf};

fn images() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins");
    let names = [
        "tile/add.sm_120.cubin",
        "tile-13.3/multi.sm_120.cubin",
        "ptx/add.sm_80.cubin",
        "other/add.fatbin",
        "other/add.ptx",
        "other/add.tilebc",
    ];
    names.iter().map(|name| std::fs::read(folder.join(name)).unwrap()).collect()
}

/// Which image, and up to four writes of up to eight bytes; half of them in the header or the section table.
fn mutation() -> impl Strategy<Value = (usize, Vec<(u32, u64, usize, bool)>)> {
    let value = prop_oneof![any::<u64>(), Just(u64::MAX), Just(0), Just(0x7fff_ffff), 0u64..0x20000];
    (0usize..6, prop::collection::vec((any::<u32>(), value, 1usize..=8, any::<bool>()), 1..5))
}

fn mutate(image: &[u8], writes: &[(u32, u64, usize, bool)]) -> Vec<u8> {
    let mut data = image.to_vec();
    let table = data.get(0x28..0x30).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap()) as usize);
    for &(at, value, size, near_table) in writes {
        let at = at as usize;
        let at = if near_table && table < data.len() { table + at % (data.len() - table) } else { at % data.len() };
        let end = (at + size).min(data.len());
        data[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
    }
    data
}

#[test]
fn nothing_panics_on_mutated_images() {
    let images = images();
    let scratch = tempfile::tempdir().unwrap();
    // No compilers: this is about bytes.
    let tools = Tools { own_program: PathBuf::new(), folders: Vec::new(), python: None };
    let read = std::cell::Cell::new(0u32);
    let config = Config { cases: 1000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let path = Path::new("mutated.cubin");
    runner
        .run(&mutation(), |(which, writes)| {
            let data = mutate(&images[which], &writes);
            if let Ok(facts) = inspect("mutated", &data, &NoProbe) {
                read.set(read.get() + 1);
                let mut text = String::new();
                print_image(&facts, &mut text).unwrap();
                differences(&[facts.clone(), facts]);
            }
            let _ = Image::from_bytes(path, data.clone());
            if let Ok(cubin) = cubin_image::Cubin::parse(&data) {
                let (scratch, keep_in) = (scratch.path(), scratch.path());
                let subject =
                    Subject { path, bytes: &data, cubin: &cubin, tools: &tools, scratch, keep_in, bytecode: None };
                for (variant, results) in make_all(&subject, &[]) {
                    for made in results.into_iter().flatten() {
                        prop_assert_eq!(made.bytes.len(), data.len());
                        VariantRecord::new(&subject, variant, &made);
                    }
                }
            }
            Ok(())
        })
        .unwrap();
    let read = read.get();
    assert!(read > 30 && read < 970, "{read} of 1000 still readable");
}
