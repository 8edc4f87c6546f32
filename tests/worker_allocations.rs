//! The hot loop allocates nothing: a longer run makes no more allocations than a short one.

mod child;

use child::{order, start};
use cubin_stress::plan::{Verify, Workload};
use std::path::Path;
use std::process::Command;

/// Rounds done, and allocations that the worker's threads made from its own program.
fn run_until(rounds: u64, workload: &Workload, counter: &str) -> (u64, u64) {
    let running = start(&order("tile/add.sm_120.cubin", workload.clone(), 3600.0), &[("LD_PRELOAD", counter)]);
    while running.journal.progress().rounds() < rounds {
        std::thread::yield_now();
    }
    running.journal.request_stop().unwrap();
    let left = running.finish();
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let count = left.stderr.lines().find_map(|line| line.strip_prefix("allocations "));
    (left.rounds(), count.expect("the counter was preloaded").parse().unwrap())
}

#[test]
fn rounds_cost_no_allocation() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("count.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/child/count_allocations.c");
    let built = Command::new("gcc").args(["-O1", "-fPIC", "-shared", "-o"]).arg(&counter).arg(source).status();
    assert!(built.expect("gcc is needed").success());
    let counter = counter.to_str().unwrap();
    for verify in [Verify::Off, Verify::Sampled, Verify::All] {
        let workload = Workload { verify, ..Workload::default() };
        let (few, short) = run_until(50, &workload, counter);
        let (many, long) = run_until(5_000, &workload, counter);
        assert!(short > 0, "setting a thread up allocates: if this is 0, nothing is counted");
        assert!(many >= few + 4_000);
        assert_eq!(short, long, "{verify:?}: {short} allocations in {few} rounds, {long} in {many}");
    }
}
