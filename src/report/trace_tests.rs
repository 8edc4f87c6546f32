//! The trace is JSON of the right shape, and times in it are the run's.

use super::*;
use crate::journal::{CallLog, Journal, JournalSpec, JournalWriter};
use crate::store::tests::{header, trial};
use serde_json::Value;

fn events(run: &RunData, folder: &Path) -> (Vec<Value>, Value) {
    let mut bytes = Vec::new();
    trace(run, folder, &mut bytes).unwrap();
    let whole: Value = serde_json::from_slice(&bytes).expect("JSON");
    (whole["traceEvents"].as_array().unwrap().clone(), whole["otherData"].clone())
}

fn run() -> RunData {
    let mut header = header();
    header.plan.arms[0].name = "tile \"new\"".into();
    RunData { header, trials: vec![trial(0), trial(1)], end: None, soft_errors: vec![] }
}

#[test]
fn every_child_has_a_name_and_a_life() {
    let folder = tempfile::tempdir().unwrap();
    let (events, other) = events(&run(), folder.path());
    let of = |phase: &str| events.iter().filter(|e| e["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("M")[0]["args"]["name"], "child 0: tile \"new\"");
    let lives = of("X");
    assert_eq!(lives.len(), 2);
    assert_eq!((&lives[1]["pid"], &lives[1]["ts"], &lives[1]["dur"]), (&1.into(), &1_010_000.0.into(), &1e6.into()));
    assert_eq!(other["gaps"], Value::Array(vec![]));
}

#[test]
fn kept_calls_are_slices_at_the_runs_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("calls")).unwrap();
    let journal = Journal::create(&JournalSpec::default()).unwrap();
    let spawned_ns = crate::journal::monotonic_ns();
    let mut thread = JournalWriter::attach(journal.fd()).unwrap().thread(1);
    for module in 1..=5000 {
        let open = thread.enter(Call::Unload, module);
        thread.leave(open, 700);
    }
    let mut log = CallLog::create(&calls_file(folder.path(), 1), u64::MAX).unwrap();
    journal.drain_into(&mut log);
    log.finish();
    let mut run = run();
    run.trials[1].spawned_ns = spawned_ns;
    let (events, other) = events(&run, folder.path());
    let calls = events.iter().filter(|e| e["cat"] == "unload").collect::<Vec<_>>();
    assert_eq!(calls.len(), 4095);
    assert_eq!(other["gaps"][0], "child 1, thread 1: 905 calls lost");
    let last = calls.last().unwrap();
    assert_eq!((&last["name"], &last["pid"], &last["tid"]), (&"cuModuleUnload".into(), &1.into(), &2.into()));
    assert_eq!((&last["args"]["module"], &last["args"]["result"]), (&5000.into(), &700.into()));
    // The child began a second after the run.
    let at = last["ts"].as_f64().unwrap();
    assert!((1_000_000.0..3_000_000.0).contains(&at), "{at}");
}

#[test]
fn what_is_missing_is_a_gap_and_no_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("calls")).unwrap();
    std::fs::write(calls_file(folder.path(), 0), b"no calls").unwrap();
    let (_, other) = events(&run(), folder.path());
    assert_eq!(other["gaps"].as_array().unwrap().len(), 1);
}
