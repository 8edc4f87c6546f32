//! Children that stop, that hang, and that will not go.

use crate::victim::{names, only_fault, run_spec, spec};
use cubin_stress::evidence::Trigger;
use cubin_stress::journal::Progress;
use cubin_stress::supervisor::interrupt::{StopFlag, StopLevel};
use cubin_stress::supervisor::trial::{self, End, KillReason, TrialObserver};
use cubin_stress::vocabulary::Place;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_child_that_stops_itself_is_told_from_one_that_hangs() {
    let mut spec = spec("stops-itself", &[]);
    spec.hang_after = Duration::from_millis(500);
    let (outcome, _) = run_spec(spec);
    assert_eq!(outcome.end, End::Killed(KillReason::Stopped));
    let fault = only_fault(&outcome);
    assert_eq!(fault.paused_by, Some(libc::SIGSTOP));
    assert!(matches!(fault.trigger, Trigger::Hang { open_ns } if open_ns >= 500_000_000));
}

/// Continues a stopped child at the first tick that finds it stopped.
#[derive(Default)]
struct Continues(i32);

impl TrialObserver for Continues {
    fn started(&mut self, pid: i32) {
        self.0 = pid;
    }

    fn tick(&mut self, _: &Progress) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap();
        if stat.contains(") t ") {
            let pid = rustix::process::Pid::from_raw(self.0).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        }
    }
}

#[test]
fn a_stopped_child_that_somebody_continues_goes_on() {
    let outcome = trial::run(spec("stops-itself", &[]), &mut Continues::default()).unwrap();
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(3), 0));
}

#[test]
fn a_child_that_never_begins_is_captured_and_killed_though_it_ignores_everything() {
    let mut spec = spec("ignores-sigterm", &[]);
    spec.begin_within = Duration::from_millis(300);
    let (outcome, told) = run_spec(spec);
    assert_eq!(outcome.end, End::Killed(KillReason::NeverBegan));
    let fault = only_fault(&outcome);
    let thread = &fault.threads[0];
    assert_eq!(thread.syscall.map(|(number, _)| number), Some(libc::SYS_pause));
    assert!(told.stood && !thread.frames.is_empty() && fault.process.signals_ignored.contains(&libc::SIGTERM));
}

#[test]
fn a_deadline_holds() {
    let mut spec = spec("ignores-sigterm", &[]);
    spec.deadline = Duration::from_millis(200);
    assert_eq!(run_spec(spec).0.end, End::Killed(KillReason::Overdue));
}

/// Raises the flag at the first tick.
struct Raises(Arc<StopFlag>, StopLevel);

impl TrialObserver for Raises {
    fn tick(&mut self, _: &Progress) {
        self.0.raise(self.1);
    }
}

#[test]
fn ending_at_once_kills_and_finds_no_fault() {
    let spec = spec("ignores-sigterm", &[]);
    let mut raises = Raises(Arc::clone(&spec.stop), StopLevel::Kill);
    let outcome = trial::run(spec, &mut raises).unwrap();
    assert_eq!((outcome.end, outcome.faults.len()), (End::Killed(KillReason::Ended), 0));
}

#[test]
fn a_child_that_does_not_heed_the_request_to_stop_is_captured_and_killed() {
    let mut spec = spec("ignores-sigterm", &[]);
    spec.hang_after = Duration::from_millis(200);
    let mut raises = Raises(Arc::clone(&spec.stop), StopLevel::Finish);
    let outcome = trial::run(spec, &mut raises).unwrap();
    assert_eq!((outcome.end, outcome.faults.len()), (End::Killed(KillReason::Unheeding), 1));
}

#[test]
fn a_hang_after_main_shows_the_destructor_and_who_holds_the_lock() {
    let mut spec = spec("destructor-hangs", &[]);
    spec.begin_within = Duration::from_millis(500);
    let (outcome, _) = run_spec(spec);
    let fault = only_fault(&outcome);
    assert!(fault.stderr_tail.contains("PASS"));
    let main = fault.threads.iter().find(|thread| thread.tid == fault.pid).unwrap();
    let names = names(main);
    let at = |name| names.iter().position(|found| *found == name);
    assert!(at("finish").unwrap() < at("exit").unwrap(), "{names:?}");
    assert!(main.frames.iter().any(|frame| frame.place == Place::Loader) && at("main").is_none(), "{names:?}");
    // futex(2) on a mutex: the third word behind the lock is its owner (glibc's pthread_mutex_t).
    let (number, arguments) = main.syscall.unwrap();
    assert_eq!((number, arguments[1] & 0x7f), (libc::SYS_futex, 0));
    let holder = fault.locks.iter().find(|lock| lock.waiter == main.tid).unwrap();
    let thread = fault.threads.iter().find(|thread| thread.tid == holder.owner).unwrap();
    assert!(crate::victim::names(thread).contains(&"holds"));
}
