//! What a child starts goes with it, whichever session that is in.

use crate::victim::{run, run_spec, spec};
use cubin_stress::evidence::Trigger;
use cubin_stress::plan::Observe;
use cubin_stress::supervisor::trial::{End, TrialOutcome};

/// The grandchild that the victim named on its stderr.
fn grandchild(outcome: &TrialOutcome) -> i32 {
    let line = outcome.stderr_tail.lines().find_map(|line| line.strip_prefix("grandchild "));
    line.unwrap_or_else(|| panic!("no grandchild in {:?}", outcome.stderr_tail)).parse().unwrap()
}

fn is_gone(pid: i32) -> bool {
    !std::fs::exists(format!("/proc/{pid}")).unwrap()
}

#[test]
fn a_forked_grandchild_in_its_own_session_is_gone() {
    let (outcome, _) = run("forks-grandchild", &[]);
    assert_eq!((outcome.end, outcome.descendants), (End::Signaled(libc::SIGABRT), 2));
    assert!(is_gone(grandchild(&outcome)) && outcome.soft_errors.is_empty(), "{:?}", outcome.soft_errors);
}

#[test]
fn a_spawned_grandchild_in_its_own_session_is_gone() {
    let (outcome, _) = run("spawns-grandchild", &[]);
    assert_eq!((outcome.end, outcome.descendants), (End::Signaled(libc::SIGABRT), 1));
    assert!(is_gone(grandchild(&outcome)) && outcome.soft_errors.is_empty(), "{:?}", outcome.soft_errors);
}

#[test]
fn grandchildren_are_gone_even_where_nothing_is_traced() {
    for name in ["forks-grandchild", "spawns-grandchild"] {
        let mut spec = spec(name, &[]);
        spec.observe = Observe::None;
        let (outcome, _) = run_spec(spec);
        assert_eq!(outcome.end, End::Signaled(libc::SIGABRT));
        assert!(is_gone(grandchild(&outcome)), "{name}");
    }
}

#[test]
fn a_fault_in_a_child_made_by_vfork_is_seen() {
    let (outcome, _) = run("vfork-child-dies", &[]);
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(3), 1));
    let fault = &outcome.faults[0];
    assert_ne!(fault.pid, outcome.pid);
    assert!(matches!(fault.trigger, Trigger::Signal { signal: libc::SIGSEGV, .. }) && fault.journal.is_none());
}
