//! The committed images are what `cubins/MANIFEST` says, all of them, and none carries a path of the machine that built it.

use cubin_stress as _;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder that line information names: it exists on no machine.
const NEUTRAL: &str = "/cubin-stress-src";
/// Bytes of all images together.
const ROOM: u64 = 3_000_000;

#[derive(Deserialize)]
struct Manifest {
    schema: String,
    images: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    file: String,
    sha256: String,
    bytes: u64,
    source: String,
    arch: String,
    compiler: Option<String>,
    compiler_version: Option<String>,
    flags: Vec<String>,
    host_object: Option<bool>,
    #[serde(default)]
    kernels: Vec<Kernel>,
    twin: Option<Twin>,
}

#[derive(Deserialize)]
struct Kernel {
    name: String,
    parameters: u32,
    hidden_parameter_bytes: u32,
    callback: bool,
}

#[derive(Deserialize)]
struct Twin {
    refused: Option<String>,
    #[serde(default)]
    kernels: Vec<TwinKernel>,
}

#[derive(Deserialize)]
struct TwinKernel {
    name: String,
    code_equal: bool,
}

fn cubins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins")
}

fn manifest() -> BTreeMap<String, Image> {
    let text = fs::read_to_string(cubins().join("MANIFEST")).expect("cubins/MANIFEST");
    let manifest: Manifest = serde_json::from_str(&text).expect("cubins/MANIFEST is JSON of the known shape");
    assert_eq!(manifest.schema, "cubin-stress/manifest/1");
    manifest.images.into_iter().map(|image| (image.file.clone(), image)).collect()
}

/// Every file under cubins/ but the sources and the MANIFEST, as the MANIFEST would name it.
fn files_on_disk() -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for folder in fs::read_dir(cubins()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        if folder.ends_with("src") {
            continue;
        }
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            files.insert(file.strip_prefix(cubins()).unwrap().to_str().expect("an ASCII name").to_owned());
        }
    }
    files
}

#[test]
fn every_image_has_the_bytes_that_the_manifest_records() {
    let manifest = manifest();
    assert_eq!(files_on_disk(), manifest.keys().cloned().collect(), "files under cubins/ and files in the MANIFEST");
    for image in manifest.values() {
        let bytes = fs::read(cubins().join(&image.file)).unwrap();
        let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((bytes.len() as u64, &sha256), (image.bytes, &image.sha256), "{}", image.file);
        assert!(cubins().join(&image.source).is_file(), "{}: its source {} is not there", image.file, image.source);
    }
}

#[test]
fn all_images_together_stay_small() {
    let total: u64 = manifest().values().map(|image| image.bytes).sum();
    assert!(total < ROOM, "{total} bytes of images, {ROOM} are allowed");
}

/// The runs of printable characters, five or more, as the `strings` program shows them.
fn strings(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes
        .split(|byte| !(0x20..0x7f).contains(byte))
        .filter(|run| run.len() >= 5)
        .map(|run| std::str::from_utf8(run).expect("printable ASCII"))
}

#[test]
fn no_image_carries_a_path_of_the_machine_that_built_it() {
    for image in manifest().values() {
        let bytes = fs::read(cubins().join(&image.file)).unwrap();
        for text in strings(&bytes) {
            for machine in ["/root", "/work", "/home", "/tmp", "/usr", "/Users", ":\\"] {
                assert!(!text.contains(machine), "{}: {text}", image.file);
            }
            let cubin = image.file.ends_with(".cubin");
            assert!(!cubin || !text.starts_with('/') || text.starts_with(NEUTRAL), "{}: {text}", image.file);
        }
        if image.flags.iter().any(|flag| flag == "--lineinfo") {
            assert!(strings(&bytes).any(|text| text == NEUTRAL), "{}: no folder in its line information", image.file);
        }
    }
}

#[test]
fn the_add_kernel_is_there_in_both_kinds_for_every_architecture() {
    let manifest = manifest();
    for arch in ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"] {
        for (folder, compiler, host_object) in [("tile", "tileiras", true), ("ptx", "ptxas", false)] {
            let image = &manifest[&format!("{folder}/add.{arch}.cubin")];
            assert_eq!(image.arch, arch);
            assert_eq!(
                (image.compiler.as_deref(), image.host_object),
                (Some(compiler), Some(host_object)),
                "{}",
                image.file
            );
            let [kernel] = &image.kernels[..] else { panic!("{}: one kernel expected", image.file) };
            assert_eq!((kernel.name.as_str(), kernel.parameters, kernel.callback), ("repro_kernel", 15, host_object));
        }
    }
}

#[test]
fn the_add_kernel_is_there_from_every_tileiras() {
    let manifest = manifest();
    for (folder, version) in [
        ("tile-13.1", "13.1."),
        ("tile-13.2", "13.2."),
        ("tile-13.3", "13.3."),
        ("tile", "13.4."),
        ("tile-13.5", "13.5."),
    ] {
        let image = &manifest[&format!("{folder}/add.sm_120.cubin")];
        assert!(image.compiler_version.as_deref().is_some_and(|v| v.starts_with(version)), "{}", image.file);
        let twin = image.twin.as_ref().expect("a Tile image's record names its twin");
        let codes: Vec<_> = twin.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.code_equal)).collect();
        assert_eq!(codes, [("repro_kernel", true)], "{}", image.file);
    }
}

#[test]
fn images_with_descriptors_are_there_and_have_no_twin() {
    let manifest = manifest();
    for arch in ["sm_90", "sm_100", "sm_120"] {
        let image = &manifest[&format!("tile/matmul.{arch}.cubin")];
        assert!(
            image.kernels.iter().all(|kernel| kernel.callback && kernel.hidden_parameter_bytes >= 3 * 128),
            "{}",
            image.file
        );
        assert!(image.twin.as_ref().is_some_and(|twin| twin.refused.is_some()), "{}", image.file);
    }
}

#[test]
fn of_several_kernels_tileiras_13_2_gives_a_callback_to_the_first_only() {
    let manifest = manifest();
    for (folder, expected) in [("tile-13.2", [true, false, false]), ("tile-13.3", [true; 3]), ("tile", [true; 3])] {
        let kernels = &manifest[&format!("{folder}/multi.sm_120.cubin")].kernels;
        assert_eq!(kernels.iter().map(|kernel| kernel.callback).collect::<Vec<_>>(), expected, "{folder}");
        assert!(kernels[1].hidden_parameter_bytes > 0, "{folder}: multi_b needs descriptors");
    }
}
