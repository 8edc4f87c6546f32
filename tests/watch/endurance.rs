//! Many trials leave nothing behind.

use crate::victim::{run, run_spec, spec};
use cubin_stress::plan::Observe;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Not among the others: it counts the descriptors of the whole process.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn alone() {
    run("signals", &["segv"]);
    let (before, memory) = (descriptors(), resident_kib());
    for round in 0..150 {
        let mut spec = spec("signals", &["segv"]);
        spec.observe = [Observe::Full, Observe::Light, Observe::None][round % 3];
        run_spec(spec);
    }
    run("forks-grandchild", &[]);
    assert_eq!(descriptors(), before, "descriptors are left open");
    assert!(resident_kib() < memory + (8 << 10), "memory grew from {memory} to {} KiB", resident_kib());
    let me = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap_or_default();
    assert_eq!(children, "", "zombies are left");
}

#[test]
fn a_hundred_and_fifty_crashes_leave_no_descriptor_no_zombie_and_no_memory() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "endurance::alone", "--ignored"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
