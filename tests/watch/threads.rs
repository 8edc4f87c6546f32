//! Faults among threads.

use crate::victim::{faulting, names, only_fault, run};
use cubin_stress::evidence::Trigger;
use cubin_stress::supervisor::trial::End;
use std::time::{Duration, Instant};

#[test]
fn a_fault_in_a_thread_shows_both_stacks_and_what_the_other_waits_for() {
    let (outcome, _) = run("segv-thread", &[]);
    let fault = only_fault(&outcome);
    assert_eq!(names(faulting(fault))[..2], ["inner", "body"]);
    let main = fault.threads.iter().find(|thread| thread.tid == fault.pid).unwrap();
    assert!(names(main).contains(&"main"), "{:?}", names(main));
    assert_eq!((main.state, main.syscall.map(|(number, _)| number)), (Some('S'), Some(libc::SYS_futex)));
}

#[test]
fn running_out_of_stack_leaves_a_stack_to_read() {
    let (outcome, _) = run("stack-overflow", &[]);
    assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV));
    let thread = faulting(only_fault(&outcome));
    assert!(thread.frames.len() == 256 && names(thread)[..192].iter().all(|name| *name == "deeper"));
    // Thousands of frames: those in the middle are left out, and who began is still seen.
    assert!(names(thread).contains(&"main") && thread.stack_end.starts_with("end of stack; "), "{}", thread.stack_end);
}

#[test]
fn every_one_of_64_threads_is_seen() {
    let (outcome, _) = run("many-threads", &["64"]);
    let fault = only_fault(&outcome);
    assert_eq!((fault.threads.len(), fault.soft_errors.as_slice()), (64, &[][..]));
    for thread in &fault.threads {
        assert!(names(thread).iter().any(|name| ["main", "body"].contains(name)), "{:?}", names(thread));
    }
}

#[test]
fn two_threads_that_fault_at_once_are_both_recorded() {
    // How often both arrive before the first is captured is up to the scheduler; that neither is lost is not.
    let until = Instant::now() + Duration::from_secs(20);
    let mut both = false;
    while !both && Instant::now() < until {
        let (outcome, _) = run("two-faults", &[]);
        assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV));
        let primary: Vec<_> = outcome.faults.iter().filter(|fault| fault.follows.is_none()).collect();
        assert_eq!(primary.len(), 1);
        for second in outcome.faults.iter().filter(|fault| fault.follows.is_some()) {
            assert_eq!(second.follows, Some(primary[0].number));
            assert_ne!(second.tid, primary[0].tid);
            assert!(matches!(second.trigger, Trigger::Signal { signal: libc::SIGSEGV, .. }));
            both = true;
        }
    }
    assert!(both, "the second of two simultaneous faults was never seen");
}

#[test]
fn real_time_signals_pass_through() {
    let (outcome, _) = run("realtime-signals", &[]);
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(3), 0));
}

#[test]
fn a_thread_that_becomes_another_program_is_followed() {
    let (outcome, _) = run("thread-execs", &[]);
    assert_eq!(outcome.end, End::Signaled(libc::SIGABRT));
    assert_eq!(only_fault(&outcome).tid, Some(outcome.pid));
}

#[test]
fn the_first_thread_may_leave_before_the_others() {
    let (outcome, _) = run("leader-leaves", &[]);
    assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV));
    assert_eq!(names(faulting(only_fault(&outcome)))[0], "body");
}
