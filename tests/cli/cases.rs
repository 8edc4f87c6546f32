//! Cases drawn from public reports of users, on the simulated driver. Their names are those of the reports' list.

use crate::stress::{Bench, image};
use serde_json::Value;

fn path(name: &str) -> String {
    image(name).display().to_string()
}

fn fault(summary: &Value, index: usize) -> &Value {
    let fault = &summary["faults"][index];
    assert!(!fault.is_null(), "no fault {index} in {summary:#}");
    fault
}

fn words(value: &Value) -> String {
    value
        .as_array()
        .map_or(String::new(), |lines| lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
}

/// A8: the driver's Tile JIT library is missing. Nothing was done, so this is no pass; one message, with the library's name.
#[test]
fn a8_a_missing_jit_library_is_the_environments() {
    let bench = Bench::new();
    let args = [
        path("tile/add.sm_120.cubin"),
        "5".into(),
        "--driver=sim".into(),
        "--threads=4".into(),
        "--sim-bug=missing-jit".into(),
    ];
    let ran = bench.run(args).expect(3);
    let summary = bench.latest();
    assert_eq!(fault(&summary, 0)["owner"], "environment");
    assert_eq!(summary["families"].as_array().unwrap().len(), 1);
    let text = words(&fault(&summary, 0)["evidence"]);
    for word in ["221", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "libnvidia-tileiras.so.595.71.05"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let shown = ran.stdout();
    assert!(shown.lines().filter(|line| line.starts_with("warning:") && line.contains("221")).count() <= 3, "{shown}");
}

/// A9: a Tile image of the next lower minor architecture is refused, and told why; with its number changed it runs.
#[test]
fn a9_a_tile_image_needs_its_exact_architecture() {
    let bench = Bench::new();
    let run = |image: &str| {
        let ran = bench.run([image, "1", "--driver=sim", "--sim-device=sm_121", "--exposure-floor=1"]);
        (ran.code(), bench.latest())
    };
    let (code, summary) = run(&path("tile/add.sm_120.cubin"));
    assert_eq!(code, Some(3), "{summary:#}");
    assert_eq!(fault(&summary, 0)["owner"], "environment");
    let text = words(&fault(&summary, 0)["evidence"]);
    assert!(text.contains("image sm_120, device sm_121, tile images need an exact match"), "{text}");

    let bytes = std::fs::read(image("tile/add.sm_120.cubin")).unwrap();
    for (number, expected) in [(0x79, 0), (0x50, 3)] {
        let mut changed = bytes.clone();
        changed[0x31] = number;
        let file = bench.path().join(format!("{number:x}.cubin"));
        std::fs::write(&file, changed).unwrap();
        let (code, summary) = run(file.to_str().unwrap());
        assert_eq!(code, Some(expected), "{summary:#}");
        if expected == 3 {
            let text = words(&fault(&summary, 0)["evidence"]);
            assert!(text.contains("209") && text.contains("sm_80"), "{text}");
        }
    }
}

/// A11: a full table of modules is the plan's own doing, whatever code says so; without kept modules there is no error.
#[test]
fn a11_an_exhausted_table_is_no_wrong_architecture() {
    let bench = Bench::new();
    let common = [
        path("ptx/add.sm_120.cubin"),
        "1".into(),
        "--driver=sim".into(),
        "--sim-bug=module-limit:n=500".into(),
        "--exposure-floor=1".into(),
    ];
    bench.run(common.iter().cloned().chain(["--keep=1".into()])).expect(1);
    let summary = bench.latest();
    let fault = fault(&summary, 0);
    assert_eq!((&fault["kind"], &fault["owner"]), (&"api_error".into(), &"harness".into()));
    let text = words(&fault["evidence"]);
    assert!(text.contains("same image loaded 500 times before in this process; 500 live modules"), "{text}");
    assert!(!text.contains("exact match"), "{text}");
    bench.run(common.iter().cloned().chain(["--keep=0".into()])).expect(0);
}

/// A14: an older driver without the newer entry points runs the basic plan, and the library plan names what it lacks.
#[test]
fn a14_a_missing_entry_point_is_named() {
    let bench = Bench::new();
    let bug = "--sim-bug=missing-entry:entry=cuCtxCreate_v4+cuLibraryLoadData+cuKernelGetFunction";
    let common =
        [path("tile/add.sm_120.cubin"), "1".into(), "--driver=sim".into(), bug.into(), "--exposure-floor=1".into()];
    bench.run(&common).expect(0);
    let ran = bench.run(common.iter().cloned().chain(["--api=library".into()])).expect(3);
    let shown = ran.stdout();
    assert!(shown.contains("cuLibraryLoadData") && shown.contains("595.71.05"), "{shown}");
    assert!(!shown.contains("panicked"), "{shown}");
}

/// A15: a child that never began must not pass: one of eight is a fault, all of them mean that nothing can be run here.
#[test]
fn a15_a_child_that_never_began_is_no_pass() {
    let bench = Bench::new();
    let run = |bug: &str| {
        let args = ["60", "--driver=sim", "--life=0.2", "--trials=8", "--exposure-floor=1", bug];
        let ran = bench.run([&path("ptx/add.sm_120.cubin")].into_iter().map(String::as_str).chain(args));
        (ran.code(), ran.stdout(), bench.latest())
    };
    let (code, shown, summary) = run("--sim-bug=fail-context:k=3,of=8");
    assert_eq!(code, Some(1), "{shown}");
    let fault = fault(&summary, 0);
    assert_eq!(
        (&fault["kind"], &fault["owner"], &fault["trial"]),
        (&"api_error".into(), &"environment".into(), &3.into())
    );
    assert!(shown.contains("child 3: 0 iterations, CUDA_ERROR_OUT_OF_MEMORY at context creation"), "{shown}");
    let (code, shown, _) = run("--sim-bug=fail-context:all=1");
    assert_eq!(code, Some(3), "{shown}");
}

/// A driver without a device: exit 3 with the code's name, its number and what to do.
#[test]
fn no_device_is_told_with_its_code_and_the_way_out() {
    let bench = Bench::new();
    let ran = bench.run([&path("ptx/add.sm_120.cubin"), "5", "--driver=sim", "--sim-bug=no-device"]).expect(3);
    let shown = ran.stdout();
    assert!(shown.contains("CUDA_ERROR_NO_DEVICE") && shown.contains("100"), "{shown}");
}
