//! What the laboratory plants is found, with the calls in flight, the place and the stacks.

use crate::stress::{Bench, image};
use serde_json::Value;

fn path(name: &str) -> String {
    image(name).display().to_string()
}

/// Runs the Tile add kernel with a forced bug until the first fault; gives the fault and its evidence.
fn forced(bug: &str, more: &[&str]) -> (Value, Value) {
    let bench = Bench::new();
    let bug = format!("--sim-bug={bug}:force=1");
    let image = path("tile/add.sm_120.cubin");
    let args = [&[image.as_str(), "30", "--driver=sim", "--max-faults=1", &bug], more].concat();
    bench.run(args).expect(1);
    let fault = bench.latest()["faults"][0].clone();
    let evidence = fault["evidence_file"].as_str().map(|file| {
        let bytes = std::fs::read(bench.path().join("results/latest").join(file)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    });
    (fault, evidence.unwrap_or(Value::Null))
}

fn in_flight(evidence: &Value) -> Vec<&str> {
    let threads = evidence["journal"]["threads"].as_array().unwrap();
    threads.iter().filter_map(|t| t["in_flight"]["call"].as_str()).collect()
}

/// Places on the stack of a thread that runs through the driver, innermost first.
fn stacks_through_the_driver(evidence: &Value) -> usize {
    let through = |thread: &&Value| {
        let frames = thread["frames"].as_array().unwrap();
        frames.iter().any(|f| f["place"] == "libcuda") && frames.iter().any(|f| f["place"] == "worker")
    };
    evidence["threads"].as_array().unwrap().iter().filter(through).count()
}

#[test]
fn a_crash_in_the_driver_has_the_launch_in_flight_and_the_unload_beside_it() {
    let (fault, evidence) = forced("callback-list-race", &[]);
    assert_eq!(
        (&fault["kind"], &fault["place"], &fault["call"]),
        (&"crash".into(), &"libcuda".into(), &"cuLaunchKernel".into())
    );
    assert!(in_flight(&evidence).contains(&"unload"), "{:?}", in_flight(&evidence));
    assert!(stacks_through_the_driver(&evidence) >= 2, "both threads' stacks lead from the worker into the driver");
    assert!(fault["build_id"].is_string() && fault["offset"].is_u64());
}

#[test]
fn host_code_that_was_unmapped_too_early_is_named_with_its_image() {
    let (fault, _) = forced("host-object-freed-early", &[]);
    assert_eq!((&fault["place"], &fault["owner"]), (&"host_object_unmapped".into(), &"driver".into()));
    let text = fault["evidence"][0].as_str().unwrap();
    assert!(text.contains("tile/add.sm_120.cubin"), "{text}");
}

#[test]
fn a_deadlock_is_a_hang_with_both_calls_and_both_stacks() {
    let (fault, evidence) = forced("load-unload-deadlock", &["--hang-after=1s"]);
    assert_eq!((&fault["kind"], &fault["owner"]), (&"hang".into(), &"driver".into()));
    let mut calls = in_flight(&evidence);
    calls.sort_unstable();
    assert_eq!(calls, ["load", "unload"]);
    assert!(stacks_through_the_driver(&evidence) >= 2);
}

#[test]
fn a_launch_of_another_modules_kernel_is_a_wrong_result() {
    let (fault, _) = forced("wrong-code", &["--verify=all"]);
    assert_eq!(fault["kind"], "wrong_result");
}

#[test]
fn the_function_table_race_is_found_with_any_image() {
    let bench = Bench::new();
    for name in ["tile/add.sm_120.cubin", "ptx/add.sm_120.cubin"] {
        let image = path(name);
        bench.run([&image, "30", "--driver=sim", "--max-faults=1", "--sim-bug=module-table-race:force=1"]).expect(1);
        assert_eq!(bench.latest()["faults"][0]["place"], "libcuda", "{name}");
    }
}

/// The sequence of case A1 as a plan: load, look up, unload, launch; then the same with a second module, in order.
#[test]
fn a1_a_stale_function_is_the_applications_whatever_the_driver_makes_of_it() {
    let bench = Bench::new();
    let mut plan = String::from("threads = 1\n");
    let mut op = |call: &str, names: &str| plan.push_str(&format!("[[op]]\ncall = \"{call}\"\n{names}\n"));
    op("load", "module = \"m1\"");
    op("get_function", "module = \"m1\"\nfunction = \"f1\"");
    op("unload", "module = \"m1\"");
    op("launch", "function = \"f1\"");
    op("load", "module = \"m2\"");
    op("get_function", "module = \"m2\"\nfunction = \"f2\"");
    op("launch", "function = \"f2\"");
    op("sync", "");
    std::fs::write(bench.path().join("plan.toml"), plan).unwrap();
    for (reaction, kind) in [("fault", "crash"), ("400", "api_error"), ("716", "api_error")] {
        let bug = format!("--sim-bug=stale-function:reaction={reaction}");
        let image = path("ptx/add.sm_120.cubin");
        bench.run([&image, "5", "--driver=sim", "--plan=plan.toml", "--trials=1", &bug]).expect(1);
        let fault = &bench.latest()["faults"][0];
        assert_eq!((&fault["kind"], &fault["owner"]), (&kind.into(), &"application".into()), "{reaction}: {fault:#}");
        assert!(fault["evidence"][0].as_str().unwrap().contains("cuModuleUnload"), "{fault:#}");
    }
}

#[test]
fn compared_arms_end_by_themselves_with_an_owner_and_what_the_fault_follows() {
    let bench = Bench::new();
    let images = [path("tile/add.sm_120.cubin"), path("ptx/add.sm_120.cubin")];
    let more = ["120", "--driver=sim", "--sim-bug=callback-list-race:force=1", "--life=0.3", "--exposure-floor=1"];
    bench.run(images.iter().map(String::as_str).chain(more)).expect(1);
    let summary = bench.latest();
    let verdict = &summary["verdict"];
    assert_eq!((&verdict["owner"], &verdict["confidence"]), (&"driver".into(), &"established".into()), "{verdict:#}");
    assert!(verdict["text"].as_str().unwrap().contains("Tile IR only"), "{verdict:#}");
    assert!(summary["comparison"]["p_value"].as_f64().unwrap() < 0.01);
    assert!(summary["seconds"].as_f64().unwrap() < 119.0, "it ends when the answer is clear");
}
