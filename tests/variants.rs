//! `stress variants`: what is made, what the manifest says, and that each variant does on the simulated driver what its
//! manifest predicts.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn cubins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins")
}

fn stress() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
    command.current_dir(cubins());
    command
}

/// Makes variants without any compiler at hand, unless `path` names folders with some.
fn variants(image: &str, out: &Path, path: &str) -> Value {
    let output =
        stress().args(["variants", image, "--out"]).arg(out).env("PATH", path).env_remove("CUDA_HOME").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(out.join("variants.json")).unwrap()).unwrap()
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array().unwrap().iter().find(|v| v["name"] == name)
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn the_manifest_names_every_byte_that_changed() {
    let out = tempfile::tempdir().unwrap();
    for image in [
        "tile/add.sm_90.cubin",
        "tile/matmul.sm_120.cubin",
        "tile-13.1/add.sm_120.cubin",
        "tile-13.3/multi.sm_120.cubin",
    ] {
        let original = std::fs::read(cubins().join(image)).unwrap();
        let manifest = variants(image, out.path(), "/nonexistent");
        for variant in manifest["variants"].as_array().unwrap().iter().filter(|v| v["compiled"].is_null()) {
            let mut rebuilt = original.clone();
            for change in variant["changes"].as_array().unwrap() {
                let at = change["offset"].as_u64().unwrap() as usize;
                let (before, after) = (change["before"].as_str().unwrap(), change["after"].as_str().unwrap());
                let (before, after) = (unhex(before), unhex(after));
                assert_eq!(rebuilt[at..at + before.len()], before);
                rebuilt[at..at + after.len()].copy_from_slice(&after);
            }
            let made = std::fs::read(out.path().join(variant["file"].as_str().unwrap())).unwrap();
            assert!(rebuilt == made && made != original, "{image}: {}", variant["name"]);
        }
    }
}

#[test]
fn what_cannot_be_made_is_named_with_the_reason() {
    let out = tempfile::tempdir().unwrap();
    let reason = |image: &str, name: &str| {
        let manifest = variants(image, out.path(), "/nonexistent");
        named(&manifest["not_made"], name).map(|v| v["reason"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    if !has_system_cuda() {
        // Without ptxas, the MANIFEST of the committed images still knows the twin of this very PTX.
        let twin = reason("tile/add.sm_90.cubin", "regular-twin");
        assert!(twin.contains("no ptxas") && twin.contains("repro_kernel equal"), "{twin}");
        assert!(reason("tile/add.sm_90.cubin", "other-compiler").contains("no tileiras"));
    }
    let descriptors = reason("tile/matmul.sm_90.cubin", "regular-twin");
    assert!(descriptors.contains("descriptors") && descriptors.contains("matmul (424 bytes)"), "{descriptors}");
    assert!(reason("ptx/add.sm_90.cubin", "no-host-object").contains("no host object"));
    assert!(reason("tile-13.1/add.sm_120.cubin", "language-ptx").contains("no language"));
}

/// Compilers in `/usr/local/cuda*` are found whatever `PATH` says.
fn has_system_cuda() -> bool {
    let entries = std::fs::read_dir("/usr/local").into_iter().flatten().flatten();
    entries.into_iter().any(|e| e.file_name().to_string_lossy().starts_with("cuda"))
}

/// Runs an image for a moment on the simulated driver.
fn run(image: &Path, kernel: &str) -> (Option<i32>, Value) {
    let out = tempfile::tempdir().unwrap();
    let output = stress()
        .arg(image)
        .args(["0.3", "--driver", "sim", "--format", "json", "--exposure-floor", "0", "--quiet", "--max-faults", "1"])
        .args(["--kernel", kernel, "--verify", "all", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn each_variant_does_what_its_manifest_predicts() {
    let out = tempfile::tempdir().unwrap();
    let manifest = variants("tile/add.sm_90.cubin", out.path(), "/nonexistent");
    let made = manifest["variants"].as_array().unwrap();
    let names: Vec<&str> = made.iter().map(|v| v["name"].as_str().unwrap()).collect();
    let patched = "no-host-object no-debug scrubbed language-ptx renamed unique callback-fault device-fault";
    if !has_system_cuda() {
        assert_eq!(names, patched.split(' ').collect::<Vec<_>>());
    }
    for variant in made {
        let file = out.path().join(variant["file"].as_str().unwrap());
        let (code, summary) = run(&file, variant["kernels"][0].as_str().unwrap());
        let fault = &summary["faults"][0];
        let arm = &summary["arms"][0];
        let name = &variant["name"];
        match variant["predicts"].as_str().unwrap() {
            prediction @ ("runs_as_tile" | "runs_as_regular") => {
                assert_eq!(code, Some(0), "{name}: {summary}");
                assert!(arm["calls"]["launch"]["count"].as_u64().unwrap() > 0, "{name}");
                let host = arm["image"]["host_object"].as_bool().unwrap();
                assert_eq!(host, prediction == "runs_as_tile", "{name}");
            }
            "callback_faults" => {
                assert_eq!(code, Some(1), "{name}");
                let seen = (fault["kind"].as_str(), fault["place"].as_str(), fault["owner"].as_str());
                assert_eq!(seen, (Some("crash"), Some("host_object"), Some("cuda_tile")), "{summary}");
            }
            "device_faults" => {
                assert_eq!(code, Some(1), "{name}");
                assert_eq!(
                    (fault["kind"].as_str(), fault["owner"].as_str()),
                    (Some("api_error"), Some("cuda_tile")),
                    "{summary}"
                );
            }
            other => panic!("{other}"),
        }
    }
}

/// Folders with `ptxas`, from `PATH` or from the folder that `STRESS_TEST_CUDA_BIN` names.
fn compilers() -> Option<String> {
    let named = std::env::var("STRESS_TEST_CUDA_BIN").ok();
    let path = named.into_iter().chain(std::env::var("PATH").ok()).collect::<Vec<_>>().join(":");
    std::env::split_paths(&path).any(|folder| folder.join("ptxas").is_file()).then_some(path)
}

#[test]
fn the_twins_machine_code_is_the_images_own() {
    let Some(path) = compilers() else {
        eprintln!("skipped: no ptxas in PATH nor in the folder that STRESS_TEST_CUDA_BIN names");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let manifest = variants("tile/add.sm_90.cubin", out.path(), &path);
    let twin = named(&manifest["variants"], "regular-twin").unwrap();
    let recorded: Value = serde_json::from_slice(&std::fs::read(cubins().join("MANIFEST")).unwrap()).unwrap();
    let entry = recorded["images"].as_array().unwrap().iter().find(|i| i["file"] == "tile/add.sm_90.cubin").unwrap();
    assert_eq!(twin["compiled"]["source_sha256"], entry["twin"]["ptx_sha256"]);
    if twin["compiled"]["version"] == entry["twin"]["compiler_version"] {
        assert_eq!(twin["compiled"]["code"][0]["code_equal"], true);
        assert_eq!(twin["compiled"]["code"][0]["code_sha256"], entry["twin"]["kernels"][0]["code_sha256"]);
    }
    let (code, summary) = run(&out.path().join(twin["file"].as_str().unwrap()), "repro_kernel");
    assert_eq!((code, summary["arms"][0]["image"]["host_object"].as_bool()), (Some(0), Some(false)), "{summary}");
}

#[test]
fn a_run_compares_an_image_with_its_variants() {
    let out = tempfile::tempdir().unwrap();
    let output = stress()
        .args(["tile/add.sm_90.cubin", "2", "--with-variants", "--driver", "sim", "--format", "json", "--life", "0.1s"])
        .args(["--exposure-floor", "0", "--out"])
        .arg(out.path())
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = summary["arms"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    for name in ["tile/add.sm_90", "tile/add.sm_90.no-host-object", "tile/add.sm_90.renamed", "tile/add.sm_90.unique"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    // The twin, or where there is no ptxas the built-in image that stands in for it.
    assert!(names.contains(&"tile/add.sm_90.regular-twin") || names.contains(&"ptx:add"), "{names:?}");
    for arm in summary["arms"].as_array().unwrap() {
        assert!(arm["calls"]["launch"]["count"].as_u64().unwrap() > 0, "{arm}");
        assert_eq!(arm["faults"], 0, "{arm}");
    }
}

#[test]
fn a_twin_that_would_lack_descriptors_is_refused() {
    let out = tempfile::tempdir().unwrap();
    let output = stress()
        .args(["tile/matmul.sm_90.cubin", "1", "--with-twin", "--driver", "sim", "--out"])
        .arg(out.path())
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("no regular twin of tile/matmul.sm_90.cubin: descriptors")
    );
}

/// A stand-in for another tileiras: it says its version and hands out the image that the real one made of that bytecode.
#[test]
fn other_compilers_are_found_by_their_version() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = folder.path().join("tileiras");
    let made = cubins().join("tile-13.5/add.sm_120.cubin");
    let script = format!(
        "#!/bin/sh\n[ $1 = --version ] && echo 'Cuda compilation tools, release 13.5, V13.5.37' && exit\nfor last; do :; done\ncp '{}' \"$last\"\n",
        made.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = variants("tile/add.sm_120.cubin", out.path(), &format!("{}:/usr/bin:/bin", folder.path().display()));
    let all = manifest["variants"].as_array().unwrap();
    let other = all.iter().find(|v| v["compiled"]["version"] == "13.5.37").unwrap();
    assert_eq!(
        (other["name"].as_str(), other["compiled"]["compiler"].as_str()),
        (Some("other-compiler"), Some("tileiras"))
    );
    assert_eq!(other["file"], "add.sm_120.other-compiler-13.5.37.cubin");
    assert_eq!(other["compiled"]["code"][0]["kernel"], "repro_kernel");
    assert_eq!(std::fs::read(out.path().join(other["file"].as_str().unwrap())).unwrap(), std::fs::read(made).unwrap());
    // Of its own release there is nothing to compare.
    let manifest =
        variants("tile-13.5/add.sm_120.cubin", out.path(), &format!("{}:/usr/bin:/bin", folder.path().display()));
    let all = manifest["variants"].as_array().unwrap();
    assert!(!all.iter().any(|v| v["compiled"]["version"] == "13.5.37"));
}
