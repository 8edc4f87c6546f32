//! `stress inspect` on the committed images and on hostile files, through the real binary.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn cubins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins")
}

fn inspect(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stress")).arg("inspect").args(arguments).current_dir(cubins()).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = inspect(&[&["--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn both_add_kernels_and_their_difference() {
    let report = json(&["tile/add.sm_120.cubin", "ptx/add.sm_120.cubin"]);
    assert_eq!(report["schema"], "cubin-stress/inspect/1");
    let [tile, regular] = [&report["images"][0], &report["images"][1]];
    for image in [tile, regular] {
        assert_eq!(image["arch"], "sm_120");
        let kernel = &image["kernels"][0];
        assert_eq!((kernel["name"].as_str(), kernel["cbank_param_size"].as_u64()), (Some("repro_kernel"), Some(72)));
        let pointers: Vec<&str> =
            kernel["parameters"].as_array().unwrap().iter().map(|p| p["pointer"].as_str().unwrap()).collect();
        assert_eq!(pointers, ["yes", "no", "no", "no", "no"].repeat(3));
        assert_eq!(kernel["required_block"], serde_json::json!([128, 1, 1]));
        assert_eq!(kernel["param_base"], 0x380);
    }
    assert_eq!((tile["tile"].as_bool(), regular["tile"].as_bool()), (Some(true), Some(false)));
    assert_eq!(tile["compiler"]["name"], "tileiras");
    assert_eq!(regular["compiler"]["name"], "ptxas");
    assert!(
        tile["runs_on"].as_str().unwrap().contains("exactly")
            && !regular["runs_on"].as_str().unwrap().contains("exactly")
    );
    let host = &tile["host_object"];
    assert_eq!((host["machine"].as_str(), host["bytes"].as_u64()), (Some("x86-64"), Some(2824)));
    assert_eq!(host["second_copy"]["same_bytes"], true);
    assert!(regular["host_object"].is_null());
    assert!(tile["source_paths"].as_array().unwrap().iter().any(|p| p["name"] == "add.py"));
    let facts: Vec<&str> =
        report["differences"].as_array().unwrap().iter().map(|d| d["fact"].as_str().unwrap()).collect();
    for fact in ["compiler", "host object, bytes", "repro_kernel: registers", "section .nv.host, bytes"] {
        assert!(facts.contains(&fact), "{fact} in {facts:?}");
    }
    assert!(!facts.contains(&"architecture"));
}

#[test]
fn text_names_the_same_facts() {
    let output = inspect(&["tile/add.sm_120.cubin", "ptx/add.sm_120.cubin"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in
        ["tileiras 13.4", "15, in a buffer of 72 bytes", "host object            x86-64", "add.py", "differs in"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// The callbacks run in a child of their own; only an x86-64 machine can call them.
#[test]
#[cfg(target_arch = "x86_64")]
fn callbacks_that_write_descriptors_are_told_from_those_that_do_not() {
    let written = |image: &str| {
        let report = json(&[image]);
        let callbacks = report["images"][0]["host_object"]["callbacks"].as_array().unwrap().clone();
        callbacks.iter().map(|c| (c["writes_descriptors"].as_bool().unwrap(), c["written"].clone())).collect::<Vec<_>>()
    };
    for version in ["tile-13.1", "tile-13.2", "tile-13.3", "tile", "tile-13.5"] {
        assert_eq!(written(&format!("{version}/add.sm_120.cubin")), [(false, Value::Null)], "{version}");
    }
    // Three descriptors of which 13.4 writes 64 bytes each, from the first multiple of 64 behind base + 0x48 on.
    assert_eq!(written("tile/matmul.sm_90.cubin"), [(true, serde_json::json!([0x70, 0x1af]))]);
    assert_eq!(written("tile/matmul.sm_120.cubin"), [(true, serde_json::json!([0x80, 0x1bf]))]);
}

#[test]
fn kernels_without_a_callback_are_named() {
    let missing = |image: &str| {
        let mut names: Vec<String> = json(&[image])["images"][0]["host_object"]["kernels_without_callback"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(missing("tile-13.2/multi.sm_120.cubin"), ["multi_b", "multi_c"]);
    assert!(missing("tile-13.3/multi.sm_120.cubin").is_empty());
    assert!(missing("tile/multi.sm_120.cubin").is_empty());
}

#[test]
fn a_folder_and_every_form_of_image() {
    let report = json(&["."]);
    let images = report["images"].as_array().unwrap();
    let kinds: std::collections::BTreeSet<&str> = images.iter().map(|i| i["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["cubin", "fatbin", "ptx", "tile_bytecode"]);
    assert!(report["refused"].as_array().unwrap().is_empty());
    let fatbin = images.iter().find(|i| i["kind"] == "fatbin").unwrap();
    assert!(fatbin["members"].as_array().unwrap().iter().all(|m| m["error"].is_null()));
}

#[test]
fn an_object_file_shows_its_fat_binaries() {
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/cubin-image/tests/data/pair.o");
    let report = json(&[object.to_str().unwrap()]);
    let members = report["images"][0]["members"].as_array().unwrap();
    let kinds: Vec<&str> = members.iter().map(|m| m["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["cubin", "PTX text", "cubin", "Tile IR bytecode"]);
    assert_eq!(
        (members[0]["image"]["tile"].as_bool(), members[2]["image"]["tile"].as_bool()),
        (Some(false), Some(true))
    );
}

/// One line on stderr with the file, the code, and less than a second.
fn refused(path: &Path, code: i32, part: &str) {
    let start = Instant::now();
    let output = inspect(&[path.to_str().unwrap()]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{}: {:?}", path.display(), start.elapsed());
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains(path.to_str().unwrap()) && line.contains("expected") && line.contains(part), "{line}");
}

#[test]
fn hostile_files_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let image = std::fs::read(cubins().join("tile/add.sm_120.cubin")).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(at(name), bytes).unwrap();
        at(name)
    };
    refused(&write("empty", b""), 2, "offset 0x0");
    refused(&write("cut", &image[..64]), 2, "offset 0x28");
    refused(&write("gzip", b"\x1f\x8b\x08\0\0\0\0\0"), 2, "gzip");
    refused(&write("zeroed", &[&[0; 4], &image[4..]].concat()), 2, "offset 0x0");
    std::fs::create_dir(at("folder")).unwrap();
    refused(&at("folder"), 2, "folder");
    refused(Path::new("/dev/zero"), 2, "device");
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused(&at("pipe"), 2, "pipe");
    std::fs::File::create(at("sparse")).unwrap().set_len(300 << 20).unwrap();
    refused(&at("sparse"), 2, "at most");
    refused(&at("missing"), 2, "No such file");
    let mut foreign = image.clone();
    let host = host_offset(&image);
    foreign[host + 18] = 183;
    refused(&write("foreign", &foreign), 3, &format!("offset {host:#x}"));
    let mut outside = image;
    let table = u64::from_le_bytes(outside[0x28..0x30].try_into().unwrap()) as usize;
    outside[table + 64 + 0x18..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(&write("outside", &outside), 2, &format!("{:#x}", 0x3e));
}

fn host_offset(image: &[u8]) -> usize {
    cubin_image::Cubin::parse(image).unwrap().host_object().unwrap().offset as usize
}

#[test]
fn the_committed_schemas_are_those_of_the_program() {
    for (name, file) in [("inspect", "inspect-1.json"), ("variants", "variants-1.json")] {
        let output = Command::new(env!("CARGO_BIN_EXE_stress")).args(["schema", name]).output().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(file);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(String::from_utf8(output.stdout).unwrap() == committed, "run `stress schema {name} > schemas/{file}`");
    }
}
