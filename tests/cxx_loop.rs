//! The plain C++ loop that the worker is measured against does its work: it runs on the simulated driver, keeps one module
//! in four, gets right sums, and stops at the first code that is not success.

use cubin_stress::driver::embedded;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The loop, built once for all tests here.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (fresh, out) = (folder.join(format!("cxx-loop-{}", std::process::id())), folder.join("cxx-loop"));
        let source = root().join("benches/cxx-loop/loop.cc");
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]).arg(source);
        let built = compiler.arg("-o").arg(&fresh).arg("-ldl").output().expect("g++ is needed");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        std::fs::rename(&fresh, &out).expect("the folder is ours");
        out
    })
}

fn run(image: &str, more: &[&str]) -> Output {
    let driver = embedded::path().expect("the simulated driver can be written out");
    let mut command = Command::new(program());
    command.arg(driver).arg(root().join("cubins").join(image)).arg("0.2").args(more);
    command.env("CUDA_SIM_DEVICE", "sm_120").env_remove("CUDA_SIM_BUG").env_remove("CUDA_SIM_PROFILE");
    command.output().expect("the loop can be started")
}

fn figures(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

#[test]
fn it_goes_round_with_images_of_both_kinds_and_keeps_one_module_in_four() {
    for (image, block) in
        [("tile/add.sm_120.cubin", "1"), ("ptx/add.sm_120.cubin", "128"), ("tile-13.1/add.sm_120.cubin", "1")]
    {
        let figures = figures(&run(image, &["--threads", "2", "--block", block]));
        let number = |name: &str| figures[name].as_f64().unwrap_or_else(|| panic!("{name} in {figures}"));
        assert!(number("rounds") > 0.0 && number("seconds") >= 0.2, "{image}: {figures}");
        let rate = number("rounds") / number("seconds");
        assert!((number("rounds_per_second") / rate - 1.0).abs() < 1e-3, "{image}: {figures}");
        // Each of the two threads has up to three rounds since its last kept one.
        let since_kept = number("rounds") - 4.0 * number("kept");
        assert!((0.0..=6.0).contains(&since_kept), "{image}: {figures}");
    }
}

#[test]
fn it_keeps_none_where_none_is_asked_for() {
    assert_eq!(figures(&run("tile/add.sm_120.cubin", &["--keep", "0"]))["kept"], 0);
}

#[test]
fn it_stops_at_the_first_code_that_is_not_success() {
    let output = run("ptx/add.sm_90.cubin", &["--block", "128"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.trim()), (Some(1), "loop: cuModuleLoadData answered 209"));
    assert!(output.stdout.is_empty());
}

#[test]
fn it_says_what_is_wrong_with_its_arguments() {
    let output = run("tile/add.sm_120.cubin", &["--sideways", "1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.trim()), (Some(2), "loop: do not know --sideways 1"));
}
