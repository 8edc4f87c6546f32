//! Every source of images, run on the simulated driver through the real binary.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

struct Ran {
    code: Option<i32>,
    summary: Value,
    stderr: String,
    out: tempfile::TempDir,
}

fn run_with(arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_stress"))
        .args(arguments)
        .args(["0.3", "--driver", "sim", "--exposure-floor", "0", "--format", "json", "--verify", "all", "--out"])
        .arg(out.path())
        .envs(environment.iter().copied())
        .current_dir(root())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        summary: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        out,
    }
}

fn run(arguments: &[&str]) -> Ran {
    run_with(arguments, &[])
}

/// It loads, launches, and the sums are right.
fn runs(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stderr, ran.summary);
    for arm in ran.summary["arms"].as_array().unwrap() {
        assert!(arm["calls"]["launch"]["count"].as_u64().unwrap() > 0, "{arm}");
        assert_eq!((arm["faults"].as_u64(), arm["calls"]["launch"]["errors"].as_u64()), (Some(0), Some(0)));
    }
}

fn refused(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    parts.iter().for_each(|part| assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr));
}

#[test]
fn files_of_every_form() {
    runs(&run(&["cubins/tile/add.sm_120.cubin"]));
    runs(&run(&["cubins/other/add.ptx"]));
    runs(&run(&["cubins/other/add.fatbin"]));
    runs(&run(&["cubins/other/add.tilebc"]));
    // A kernel of another name, from a container whose members are packed.
    runs(&run(&["crates/cubin-image/tests/data/size.fatbin"]));
}

#[test]
fn built_in_images_follow_the_device() {
    for (name, device, arch) in
        [("tile:add", "sm_90", "sm_90"), ("ptx:add", "sm_121", "sm_121"), ("ptx:add", "sm_87", "sm_86")]
    {
        let ran = run(&[name, "--sim-device", device]);
        runs(&ran);
        assert_eq!(ran.summary["arms"][0]["image"]["arch"], arch);
    }
    refused(&run(&["tile:add", "--sim-device", "sm_87"]), 3, &["no image for sm_87", "sm_86"]);
    refused(&run(&["tile:none"]), 2, &["expected a built-in image", "tile:add"]);
}

#[test]
fn folders_and_patterns_give_what_suits_the_device() {
    for word in ["cubins/ptx", "cubins/ptx/add.*.cubin"] {
        let ran = run(&[word, "--sim-device", "sm_103"]);
        runs(&ran);
        let names: Vec<&str> =
            ran.summary["arms"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ptx/add.sm_100", "ptx/add.sm_103"]);
        assert!(ran.stderr.contains("2 of its 8 images"), "{}", ran.stderr);
    }
    refused(&run(&["cubins/ptx", "--sim-device", "sm_75"]), 3, &["none of its 8 images", "sm_75"]);
    refused(&run(&["cubins/no-such-*"]), 2, &["found none"]);
}

#[test]
fn a_source_that_is_not_what_was_said() {
    refused(&run(&["cubins/tile/add.sm_120.cubin", "--source", "ptx"]), 2, &["expected PTX text, found a cubin"]);
    refused(&run(&["cubins/other/add.ptx", "--source", "tile-bytecode"]), 2, &["expected Tile IR bytecode"]);
    refused(&run(&["Cargo.toml"]), 2, &["expected a cubin, a fat binary"]);
}

/// A program that pretends to be a compiler, in a folder for `PATH`.
fn pretend(name: &str, script: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(
        &path,
        format!("#!/bin/sh\ncase $1 in --version) echo 'release 13.4, V13.4.92'; exit;; esac\n{script}\n"),
    )
    .unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn path_with(folder: &Path) -> String {
    format!("{}:/usr/bin:/bin", folder.display())
}

/// Only the environment's compilers are looked at by these tests: on a machine with CUDA in `/usr/local`, that one's nvcc
/// comes after the one in `PATH`.
fn compile_with(script: &str) -> Ran {
    let (compiler, source) = (pretend("nvcc", script), tempfile::tempdir().unwrap());
    let file = source.path().join("kernel.cu");
    std::fs::write(&file, "__global__ void repro_kernel() {}\n").unwrap();
    let path = path_with(compiler.path());
    run_with(&[file.to_str().unwrap(), "--sim-device", "sm_120"], &[("PATH", &path)])
}

#[test]
fn a_compiler_that_crashes_is_a_finding_with_its_input_kept() {
    let ran = compile_with("echo about to fail >&2; kill -SEGV $$");
    refused(&ran, 1, &["nvcc", "13.4.92", "signal 11 (SIGSEGV)"]);
    let folder = ran.out.path().join("compiler-findings");
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    let finding = files.iter().find(|f| f.extension().is_some_and(|e| e == "json")).unwrap();
    let finding: Value = serde_json::from_slice(&std::fs::read(finding).unwrap()).unwrap();
    assert_eq!((finding["kind"].as_str(), finding["phase"].as_str()), (Some("compiler"), Some("compile")));
    assert_eq!((finding["signal"].as_i64(), finding["version"].as_str()), (Some(11), Some("13.4.92")));
    assert_eq!(finding["said"], "about to fail");
    assert!(finding["flags"].as_array().unwrap().iter().any(|f| f == "-arch=sm_120"));
    let input = std::fs::read_to_string(finding["input"].as_str().unwrap()).unwrap();
    assert!(input.contains("repro_kernel"));
}

#[test]
fn a_compiler_that_refuses_is_the_users_error_and_one_that_writes_an_image_is_used() {
    refused(&compile_with("echo 'kernel.cu(1): error: no' >&2; exit 2"), 2, &["refused", "error: no"]);
    let image = root().join("cubins/ptx/add.sm_120.cubin");
    runs(&compile_with(&format!("for last; do :; done; cp '{}' \"$last\"", image.display())));
}

#[test]
fn without_a_compiler_a_source_file_is_refused_with_what_to_do() {
    let source = tempfile::tempdir().unwrap();
    let (cu, py) = (source.path().join("kernel.cu"), source.path().join("kernel.py"));
    std::fs::write(&cu, "__global__ void k() {}\n").unwrap();
    std::fs::write(&py, "import cuda.tile\n").unwrap();
    let none = [("PATH", "/nonexistent")];
    let system_cuda = std::fs::read_dir("/usr/local").into_iter().flatten().flatten();
    if !system_cuda.into_iter().any(|e| e.file_name().to_string_lossy().starts_with("cuda")) {
        refused(&run_with(&[cu.to_str().unwrap()], &none), 3, &["takes nvcc", "--python"]);
    }
    refused(&run_with(&[py.to_str().unwrap()], &none), 3, &["takes Python with cuda-tile", "--python"]);
}

/// The Python interpreter with cuda-tile and compilers that `STRESS_TEST_PYTHON` names.
fn python() -> Option<String> {
    let named = std::env::var("STRESS_TEST_PYTHON").ok();
    if named.is_none() {
        eprintln!("skipped: STRESS_TEST_PYTHON names no Python interpreter with cuda-tile and nvcc in its environment");
    }
    named
}

#[test]
fn real_compilers_where_they_are_installed() {
    let Some(python) = python() else { return };
    let cutile = run(&["cubins/src/add.py", "--python", &python, "--sim-device", "sm_90"]);
    runs(&cutile);
    assert_eq!(cutile.summary["arms"][0]["image"]["compiler"], "tileiras");
    let cuda = run(&["crates/cubin-image/tests/data/pair.cu", "--python", &python, "--sim-device", "sm_90"]);
    runs(&cuda);
    assert_eq!(cuda.summary["arms"][0]["image"]["compiler"], "ptxas");
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.py");
    let text = "import cuda.tile as ct\n@ct.kernel\ndef add(a, b, c):\n    t = ct.load(a, (0, 0), (128, 128))\n    ct.store(c, (0, 0), t + ct.load(b, (0, 0), (128, 128)))\n";
    std::fs::write(&plain, text).unwrap();
    runs(&run(&[plain.to_str().unwrap(), "--python", &python, "--sim-device", "sm_120"]));
    std::fs::write(&plain, "raise SystemExit('no kernels today')\n").unwrap();
    refused(&run(&[plain.to_str().unwrap(), "--python", &python]), 2, &["refused", "no kernels today"]);
}

/// A folder with a sound image and one whose callback faults: which threads load which shows in who dies.
#[test]
fn threads_take_different_images_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let image = root().join("cubins/tile/add.sm_90.cubin");
    let variants = Command::new(env!("CARGO_BIN_EXE_stress"))
        .args(["variants", "--only", "callback-fault", "--out"])
        .arg(folder.path())
        .arg(&image)
        .output()
        .unwrap();
    assert!(variants.status.success());
    std::fs::copy(&image, folder.path().join("a.cubin")).unwrap();
    let word = folder.path().to_str().unwrap();
    let spread = |how: &str, threads: &str| run(&[word, "--spread", how, "--threads", threads, "--max-faults", "1"]);
    // The first thread takes `a.cubin`, the second the other one.
    runs(&spread("per-thread", "1"));
    for how in ["per-thread", "random"] {
        let ran = spread(how, "2");
        assert_eq!(ran.code, Some(1), "{how}: {}{}", ran.stderr, ran.summary);
        assert_eq!(ran.summary["arms"].as_array().unwrap().len(), 1);
        let fault = &ran.summary["faults"][0];
        assert_eq!((fault["kind"].as_str(), fault["place"].as_str()), (Some("crash"), Some("host_object")), "{fault}");
        if how == "per-thread" {
            assert_eq!(fault["thread"], 1);
        }
    }
    // Images that do not take the same launch cannot share one.
    std::fs::copy(root().join("cubins/tile/matmul.sm_90.cubin"), folder.path().join("b.cubin")).unwrap();
    let ran = spread("random", "2");
    assert_eq!(ran.code, Some(2), "{}{}", ran.stderr, ran.summary);
}
