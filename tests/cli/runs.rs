//! Whole runs on the simulated driver.

use crate::stress::{Bench, image};

fn path(name: &str) -> String {
    image(name).display().to_string()
}

#[test]
fn a_run_without_a_bug_is_clean_and_says_simulated() {
    let bench = Bench::new();
    let ran = bench.run([&path("tile/add.sm_120.cubin"), "2", "--driver", "sim"]).expect(0);
    assert!(ran.stdout().contains("SIMULATED"), "{}", ran.stdout());
    let summary = bench.latest();
    assert_eq!(summary["driver"]["kind"], "simulated");
    assert_eq!(summary["verdict"]["owner"], "none");
    let arm = &summary["arms"][0];
    let count = |call: &str| arm["calls"][call]["count"].as_u64().unwrap();
    let (loads, unloads, kept) = (count("load"), count("unload"), arm["kept"].as_u64().unwrap());
    assert!(loads > 100, "{loads} loads");
    assert_eq!(count("launch"), loads);
    assert!(unloads + kept >= loads - 2 && unloads + kept <= loads, "{unloads} + {kept} of {loads}");
    assert!((kept as f64 / loads as f64 - 0.25).abs() < 0.02, "{kept} of {loads} kept");
    assert!(arm["exposure"]["launch_during_unload"].as_u64().unwrap() > 0);
    assert!(arm["verified"].as_u64().unwrap() > 0);
}

#[test]
fn one_thread_is_judged_by_launches_and_below_the_floor_is_no_pass() {
    let bench = Bench::new();
    let image = path("ptx/add.sm_120.cubin");
    bench.run([&image, "0.5", "--driver", "sim", "--threads", "1", "--exposure-floor", "1000000000"]).expect(4);
    assert_eq!(bench.latest()["arms"][0]["exposure"]["yardstick"], "launches");
}

#[test]
fn a_planted_race_is_found_and_only_in_the_tile_image() {
    let bench = Bench::new();
    let bug = ["--driver", "sim", "--sim-bug", "callback-list-race:force=1"];
    bench.run([&[path("tile/add.sm_120.cubin").as_str(), "10", "--max-faults", "1"], &bug[..]].concat()).expect(1);
    let files = std::fs::read_dir(bench.path().join("results/latest/faults")).unwrap().count();
    assert_eq!(files, 1, "one crash is captured once");
    let fault = &bench.latest()["faults"][0];
    assert_eq!(
        (&fault["kind"], &fault["place"], &fault["phase"]),
        (&"crash".into(), &"libcuda".into(), &"launch".into())
    );
    assert_eq!(fault["signal"], libc::SIGSEGV);
    assert_eq!(fault["call"], "cuLaunchKernel");
    assert_eq!(fault["owner"], "driver");
    bench.run([&[path("ptx/add.sm_120.cubin").as_str(), "1", "--exposure-floor", "1"], &bug[..]].concat()).expect(0);
}
