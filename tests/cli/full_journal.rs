//! `--journal full`: every call of every child is in the run's folder.

use crate::stress::{Bench, image};
use cubin_stress::journal::read_calls;
use cubin_stress::vocabulary::Call;

#[test]
fn every_call_is_kept() {
    let bench = Bench::new();
    let tile = image("tile/add.sm_120.cubin").display().to_string();
    bench.run([&tile, "1", "--driver", "sim", "--journal", "full"]).expect(0);
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
    assert!(blocks.iter().flat_map(|b| &b.calls).any(|call| call.call == Call::Unload));
}
