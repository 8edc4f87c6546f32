//! What is kept of calls, and what other programs can read of a run.

use crate::stress::{Bench, image};
use cubin_stress::evidence::Evidence;
use cubin_stress::journal::read_calls;
use cubin_stress::report::timeline;
use cubin_stress::vocabulary::Call;
use serde_json::Value;

#[test]
fn every_call_is_kept() {
    let bench = Bench::new();
    let tile = image("tile/add.sm_120.cubin").display().to_string();
    // So short that the rings hold it all, however seldom the supervisor gets to drain them.
    let short = ["0.4", "--exposure-floor", "1", "--driver", "sim"];
    bench.run([&[tile.as_str(), "--journal", "full"], &short[..]].concat()).expect(0);
    let run = bench.path().join("results/latest");
    let mut launches = 0;
    for file in std::fs::read_dir(run.join("calls")).unwrap() {
        for block in read_calls(&file.unwrap().path()).unwrap() {
            let block = block.unwrap();
            assert_eq!(block.lost, 0);
            launches += block.calls.iter().filter(|call| call.call == Call::Launch).count() as u64;
        }
    }
    assert!(launches > 100, "{launches} launches");
    assert_eq!(bench.latest()["arms"][0]["calls"]["launch"]["count"], launches);
}

#[test]
fn a_child_that_dies_leaves_its_calls() {
    let bench = Bench::new();
    let tile = image("tile/add.sm_120.cubin").display().to_string();
    let bug = ["--sim-bug", "callback-list-race:force=1", "--max-faults", "1"];
    bench.run([&[tile.as_str(), "20", "--driver", "sim", "--journal", "full"], &bug[..]].concat()).expect(1);
    let calls = bench.path().join("results/latest/calls/000000.calls");
    let blocks = read_calls(&calls).unwrap().collect::<std::io::Result<Vec<_>>>().unwrap();
    let loads = blocks.iter().flat_map(|b| &b.calls).filter(|call| call.call == Call::Load).count();
    assert!(loads > 0);
    assert_eq!(bench.latest()["arms"][0]["calls"]["load"]["count"], loads);
}

#[test]
fn a_run_is_exported_at_its_end_and_again_later() {
    let bench = Bench::new();
    let tile = image("tile/add.sm_120.cubin").display().to_string();
    let bug = ["--sim-bug", "callback-list-race:force=1", "--max-faults", "1"];
    let export = ["--export", "hlog=now.hlog", "--export", "trace=now.json"];
    bench.run([&[tile.as_str(), "20", "--driver", "sim"], &bug[..], &export[..]].concat()).expect(1);
    bench.run(["report", "latest", "--export", "trace=later.json"]).expect(0);
    bench.run(["report", "latest", "--export", "trace=/nowhere/at/all.json"]).expect(2);
    let read = |name: &str| std::fs::read(bench.path().join(name)).unwrap();
    assert_eq!(read("now.json"), read("later.json"));
    assert!(String::from_utf8(read("now.hlog")).unwrap().contains(".launch,"));

    let trace: Value = serde_json::from_slice(&read("now.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let fault = events.iter().find(|e| e["cat"] == "fault").expect("the fault is marked");
    let open =
        events.iter().find(|e| e["args"]["open"] == true && e["name"] == "cuLaunchKernel").expect("an open launch");
    assert_eq!((&fault["pid"], &fault["tid"]), (&open["pid"], &open["tid"]));
    let end = open["ts"].as_f64().unwrap() + open["dur"].as_f64().unwrap();
    assert!((end - fault["ts"].as_f64().unwrap()).abs() < 1.0, "{open} ends where {fault} is");

    let evidence: Evidence = serde_json::from_slice(&read("results/latest/faults/0001.json")).unwrap();
    let timeline = timeline::of(&evidence, 20_000_000, true).expect("a timeline");
    let faulted = timeline.lanes.iter().find(|lane| lane.faulted).expect("the faulting thread");
    assert!(faulted.slices.last().unwrap().overlapping, "its launch met an unload");
}
