//! Programs with signal handlers of their own: what they die of is the fault.

use crate::victim::{faulting, names, only_fault, run, run_spec, spec};
use cubin_stress::evidence::Trigger;
use cubin_stress::supervisor::trial::{End, KillReason};
use std::time::Duration;

#[test]
fn a_handler_that_makes_a_success_of_a_fault_is_found_out() {
    let (outcome, told) = run("handler-exits", &[]);
    assert_eq!(outcome.end, End::Exited(3));
    assert_eq!(outcome.faults.len(), 2);
    let (fault, exit) = (&outcome.faults[0], &outcome.faults[1]);
    assert!(matches!(fault.trigger, Trigger::Signal { signal: libc::SIGSEGV, .. }));
    assert_eq!((fault.masked_as, fault.follows), (Some(3), None));
    assert_eq!(names(faulting(fault))[0], "faults");
    assert_eq!((exit.follows, exit.trigger.clone()), (Some(fault.number), Trigger::Exit { status: 3 << 8 }));
    let left = faulting(exit);
    assert!(left.frames.iter().any(|frame| frame.signal_frame) && names(left).contains(&"faults"), "{:?}", names(left));
    assert!(told.withdrawn.is_empty());
}

#[test]
fn a_fault_that_is_handled_is_only_noted() {
    let (outcome, told) = run("handler-recovers", &["3"]);
    assert_eq!((outcome.end, outcome.faults.len(), outcome.handled.len()), (End::Exited(3), 0, 3));
    assert_eq!(told.withdrawn, [0, 1, 2]);
}

#[test]
fn a_program_that_handles_thousands_of_faults_is_captured_a_few_times_only() {
    let (outcome, told) = run("handler-recovers", &["3000"]);
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(3), 0));
    assert!(told.faults.len() <= 8 && outcome.handled.len() >= 8);
}

#[test]
fn an_abort_in_a_handler_follows_the_fault_that_called_it() {
    let (outcome, _) = run("alternate-stack", &[]);
    assert_eq!((outcome.end, outcome.faults.len()), (End::Signaled(libc::SIGABRT), 2));
    let (fault, abort) = (&outcome.faults[0], &outcome.faults[1]);
    assert!(matches!(fault.trigger, Trigger::Signal { signal: libc::SIGSEGV, .. }));
    assert_eq!(abort.follows, Some(fault.number));
    let stack = faulting(abort);
    let expected = ["gives_up", "handler", "faults", "main"];
    let found: Vec<_> = names(stack).into_iter().filter(|name| expected.contains(name)).collect();
    assert_eq!((found.as_slice(), stack.stack_end.as_str()), (&expected[..], "end of stack"));
}

#[test]
fn a_handler_that_deadlocks_is_the_consequence_of_its_signal() {
    let mut spec = spec("handler-deadlocks", &[]);
    spec.begin_within = Duration::from_secs(2);
    let (outcome, told) = run_spec(spec);
    assert_eq!((outcome.end, outcome.faults.len()), (End::Killed(KillReason::NeverBegan), 2));
    let (abort, hang) = (&outcome.faults[0], &outcome.faults[1]);
    assert!(matches!(abort.trigger, Trigger::Signal { signal: libc::SIGABRT, .. }));
    assert!(abort.stderr_tail.contains("malloc(): corrupted top size"), "{}", abort.stderr_tail);
    assert!(matches!(hang.trigger, Trigger::Hang { .. }));
    assert_eq!(hang.follows, Some(abort.number));
    let main = hang.threads.iter().find(|thread| thread.tid == hang.pid).unwrap();
    assert_eq!(main.syscall.map(|(number, _)| number), Some(libc::SYS_futex));
    let at = |name| names(main).iter().position(|found| *found == name);
    let signal_frame = main.frames.iter().position(|frame| frame.signal_frame).unwrap();
    assert!(at("handler").unwrap() < signal_frame, "{:?}", names(main));
    assert!(signal_frame < at("abort").unwrap() && at("abort") < at("main"), "{:?}", names(main));
    assert!(told.stood);
}

#[test]
fn a_handler_that_resets_itself_and_returns_makes_no_second_fault() {
    let (outcome, told) = run("rust-fault", &[]);
    assert_eq!((outcome.end, told.faults.len(), told.withdrawn.len()), (End::Signaled(libc::SIGSEGV), 1, 0));
    let names = names(faulting(only_fault(&outcome)));
    assert!(names[0].contains("faults"), "{names:?}");
}

#[test]
fn an_exception_in_a_static_destructor_is_an_abort_after_main() {
    let (outcome, _) = run("throws-in-destructor", &[]);
    assert_eq!(outcome.end, End::Signaled(libc::SIGABRT));
    let fault = only_fault(&outcome);
    assert!(fault.stderr_tail.contains("cudaErrorCudartUnloading"), "{}", fault.stderr_tail);
    let names = names(faulting(fault));
    let at = |name| names.iter().position(|found| *found == name);
    assert!(at("Cache::~Cache()").unwrap() < at("exit").unwrap() && at("main").is_none(), "{names:?}");
}

#[test]
fn the_only_fault_of_a_plain_abort_is_the_abort() {
    let (outcome, _) = run("signals", &["abrt"]);
    assert!(only_fault(&outcome).earlier_signals.is_empty() && outcome.handled.is_empty());
}
