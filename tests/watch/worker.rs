//! The real worker on the simulated driver, watched: what evidence shows of planted faults.

use crate::victim::{Told, faulting, only_fault, run_spec};
use cubin_stress::driver;
use cubin_stress::evidence::{Evidence, Found, Trigger};
use cubin_stress::plan::{DriverChoice, Order, Workload};
use cubin_stress::supervisor::interrupt::{StopFlag, StopLevel};
use cubin_stress::supervisor::trial::{self, End, KillReason, TrialObserver, TrialOutcome, TrialSpec};
use cubin_stress::vocabulary::{Call, Phase, Place};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn spec(image: &str, seconds: f64, bug: Option<&str>) -> TrialSpec {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins").join(image);
    let order = Order {
        driver: driver::choose(&DriverChoice::Sim).unwrap().path,
        device: 0,
        image_path: path.clone(),
        workload: Workload::default(),
        seconds,
        seed: 1,
        child: 0,
        record: true,
        alternate: None,
    };
    let mut spec = TrialSpec::new(order, std::fs::read(path).unwrap().into(), StopFlag::new());
    spec.program.0 = env!("CARGO_BIN_EXE_stress").into();
    spec.env.push(("CUDA_SIM_CHILD".into(), "0".into()));
    spec.env.extend(bug.map(|bug| ("CUDA_SIM_BUG".into(), bug.into())));
    spec
}

fn call_of(evidence: &Evidence, index: usize) -> Option<Call> {
    evidence.journal.as_ref()?.threads[index].in_flight.map(|call| call.call)
}

/// The calls in flight of the faulting thread and of the workload's other threads.
pub fn calls(evidence: &Evidence) -> (Option<Call>, Vec<Call>) {
    let index = faulting(evidence).journal_thread.expect("the faulting thread has a record");
    let others = (0..evidence.journal.as_ref().unwrap().threads.len()).filter(|&other| other != index);
    (call_of(evidence, index), others.filter_map(|other| call_of(evidence, other)).collect())
}

fn crash(outcome: &TrialOutcome) -> &Evidence {
    assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV), "{:?}\n{}", outcome.journal.notes, outcome.stderr_tail);
    outcome.faults.iter().find(|fault| fault.follows.is_none()).unwrap()
}

#[test]
fn a_sound_trial_ends_by_itself_with_exposure_and_no_fault() {
    let (outcome, told) = run_spec(spec("tile/add.sm_120.cubin", 0.5, None));
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.stderr_tail);
    assert!(outcome.faults.is_empty() && outcome.handled.is_empty() && told.faults.is_empty());
    assert_eq!(outcome.soft_errors, Vec::<String>::new());
    assert!(outcome.journal.finished && outcome.timings.began_ns.unwrap() > outcome.timings.spawned_ns);
    assert!(outcome.totals.rounds > 0 && outcome.exposure.overlaps.launch_during_unload > 0);
}

#[test]
fn the_first_report_shows_the_launch_in_libcuda_and_the_unload_beside_it() {
    for seed in 0..4 {
        let mut spec = spec("tile/add.sm_120.cubin", 20.0, Some("callback-list-race:force=1"));
        spec.order.seed = seed;
        let (outcome, told) = run_spec(spec);
        let fault = crash(&outcome);
        // Rust's own handler resets itself and lets the instruction fault again: that is one fault.
        assert_eq!((told.faults.len(), told.withdrawn.len()), (1, 0));
        let (own, others) = calls(fault);
        assert_eq!(own, Some(Call::Launch), "seed {seed}");
        assert!(others.contains(&Call::Unload), "seed {seed}: {others:?}");
        let stack = &faulting(fault).frames;
        assert!(stack.iter().any(|frame| frame.place == Place::Libcuda) && stack.last().unwrap().place == Place::Libc);
        let driver = fault.modules.iter().find(|module| module.place == Place::Libcuda).unwrap();
        assert!(driver.build_id.is_some());
        let frame = stack.iter().find(|frame| frame.place == Place::Libcuda).unwrap();
        assert!(frame.function.is_some() && frame.module_address.is_some());
    }
}

#[test]
fn host_code_that_is_gone_is_named_with_its_image() {
    let (outcome, _) = run_spec(spec("tile/add.sm_120.cubin", 20.0, Some("host-object-freed-early:force=1")));
    let fault = crash(&outcome);
    assert_eq!(fault.place, Place::HostObjectUnmapped, "{:?} {:?}", fault.trigger, fault.place_note);
    assert!(fault.place_note.as_ref().unwrap().contains("tile/add.sm_120.cubin"));
    assert_eq!(calls(fault).0.map(Call::phase), Some(Phase::Launch));
    let stack = faulting(fault);
    let scanned = stack.frames.iter().filter(|frame| frame.found == Found::Scanned).count();
    assert_eq!((scanned, stack.frames[1].found, stack.frames[1].place), (1, Found::Scanned, Place::Libcuda));
    assert_eq!(stack.stack_end, "end of stack");
    assert!(!fault.executable_mappings.is_empty());
}

#[test]
fn a_deadlock_in_the_driver_shows_both_threads_in_their_calls() {
    let mut spec = spec("tile/add.sm_120.cubin", 30.0, Some("load-unload-deadlock:force=1"));
    spec.hang_after = Duration::from_millis(700);
    let (outcome, told) = run_spec(spec);
    assert_eq!(outcome.end, End::Killed(KillReason::Hang), "{}", outcome.stderr_tail);
    let fault = only_fault(&outcome);
    assert!(matches!(fault.trigger, Trigger::Hang { open_ns } if open_ns >= 700_000_000));
    let (own, others) = calls(fault);
    let mut phases: Vec<_> = own.into_iter().chain(others).map(Call::phase).collect();
    phases.sort();
    assert!(phases.contains(&Phase::Load) && phases.contains(&Phase::Unload), "{phases:?}");
    let in_driver = fault.threads.iter().filter(|thread| thread.frames.iter().any(|f| f.place == Place::Libcuda));
    let waiting = in_driver.filter(|thread| thread.syscall.is_some_and(|(number, _)| number == libc::SYS_futex));
    assert!(waiting.count() >= 2 && told.stood);
}

/// Raises the flag as soon as the loop has begun.
struct StopsOnceBegun(Arc<StopFlag>);

impl TrialObserver for StopsOnceBegun {
    fn tick(&mut self, progress: &cubin_stress::journal::Progress) {
        if progress.rounds() > 0 {
            self.0.raise(StopLevel::Finish);
        }
    }
}

#[test]
fn asked_to_stop_the_worker_finishes_in_order() {
    let spec = spec("tile/add.sm_120.cubin", 600.0, None);
    let stop = Arc::clone(&spec.stop);
    let outcome = trial::run(spec, &mut StopsOnceBegun(stop)).unwrap();
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(0), 0));
    assert!(outcome.journal.finished);
}

#[test]
fn a_worker_that_cannot_begin_says_why_and_is_no_fault() {
    let (outcome, told) = run_spec(spec("tile/add.sm_120.cubin", 5.0, Some("fail-context")));
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(3), 0));
    assert!(told.faults.is_empty() && !outcome.journal.notes.is_empty());
    let _: Told = told;
}
