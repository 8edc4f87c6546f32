//! Children that abuse what they were handed.

use crate::victim::{only_fault, run, run_spec, spec};
use cubin_stress::evidence::{Trigger, Watch};
use cubin_stress::plan::Observe;
use cubin_stress::supervisor::trial::End;

#[test]
fn a_flood_on_stderr_neither_blocks_the_child_nor_fills_memory() {
    let (outcome, _) = run("floods-stderr", &[]);
    assert_eq!(outcome.end, End::Signaled(libc::SIGABRT));
    assert!(outcome.stderr_bytes > 64 << 20);
    assert!(outcome.stderr_tail.len() <= 16 << 10 && outcome.stderr_tail.ends_with("the last word\n"));
    assert!(only_fault(&outcome).stderr_tail.ends_with("the last word\n"));
}

#[test]
fn closing_every_descriptor_hides_nothing() {
    let (outcome, _) = run("closes-descriptors", &[]);
    assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV));
    assert_eq!(only_fault(&outcome).process.descriptors, Some(0));
}

#[test]
fn noise_in_the_journal_is_said_and_hurts_nothing() {
    for seed in 1..20 {
        let (outcome, _) = run("journal-noise", &[&seed.to_string()]);
        assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV));
        let journal = only_fault(&outcome).journal.as_ref().unwrap();
        assert!(
            journal.soft_errors.iter().any(|line| line.contains("journal unreadable")),
            "{:?}",
            journal.soft_errors
        );
    }
}

#[test]
fn an_unwatched_child_leaves_its_status() {
    let mut spec = spec("signals", &["segv"]);
    spec.observe = Observe::None;
    let (outcome, told) = run_spec(spec);
    assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV));
    let fault = only_fault(&outcome);
    assert_eq!((fault.watch, fault.trigger.clone()), (Watch::Status, Trigger::Exit { status: libc::SIGSEGV }));
    assert_eq!(told.faults.len(), 1);
}
