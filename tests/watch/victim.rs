//! Runs one victim as a trial.

use cubin_stress::evidence::{Evidence, Frame, Thread, Trigger};
use cubin_stress::plan::{Order, Workload};
use cubin_stress::supervisor::interrupt::StopFlag;
use cubin_stress::supervisor::trial::{self, TrialObserver, TrialOutcome, TrialSpec};
use std::sync::Arc;
use std::time::Duration;

/// A specification whose program is this victim. It writes no journal, so it may take its time to begin.
pub fn spec(name: &str, args: &[&str]) -> TrialSpec {
    let order = Order {
        driver: "/nonexistent".into(),
        device: 0,
        image_path: "image".into(),
        workload: Workload::default(),
        seconds: 60.0,
        seed: 1,
        child: 0,
        record: true,
        alternate: None,
    };
    let mut spec = TrialSpec::new(order, Arc::from(&b"image"[..]), StopFlag::new());
    spec.program = (victims::program(name), args.iter().map(Into::into).collect());
    spec.hang_after = Duration::from_secs(30);
    // The victim is a program under test here, not our worker.
    spec.around.known.worker = Some("/nowhere".into());
    spec
}

/// Keeps what it is told.
#[derive(Debug, Default)]
pub struct Told {
    /// Numbers and triggers of evidence, in order.
    pub faults: Vec<(u32, Trigger)>,
    /// Numbers that were withdrawn.
    pub withdrawn: Vec<u32>,
    /// Whether the child still stood there each time.
    pub stood: bool,
}

impl TrialObserver for Told {
    fn fault(&mut self, evidence: &Evidence) {
        self.stood = std::fs::exists(format!("/proc/{}/maps", evidence.pid)).unwrap();
        self.faults.push((evidence.number, evidence.trigger.clone()));
    }

    fn withdrawn(&mut self, number: u32) {
        self.withdrawn.push(number);
    }
}

/// Runs it.
pub fn run_spec(spec: TrialSpec) -> (TrialOutcome, Told) {
    let mut told = Told::default();
    let outcome = trial::run(spec, &mut told).unwrap();
    assert!(!std::fs::exists(format!("/proc/{}", outcome.pid)).unwrap(), "the child is still there");
    (outcome, told)
}

/// Runs this victim.
pub fn run(name: &str, args: &[&str]) -> (TrialOutcome, Told) {
    run_spec(spec(name, args))
}

/// The only fault of a trial.
pub fn only_fault(outcome: &TrialOutcome) -> &Evidence {
    assert_eq!(outcome.faults.len(), 1, "{:#?}", outcome.faults.iter().map(|f| &f.trigger).collect::<Vec<_>>());
    &outcome.faults[0]
}

/// The thread that evidence is about.
pub fn faulting(evidence: &Evidence) -> &Thread {
    evidence.threads.iter().find(|thread| Some(thread.tid) == evidence.tid).unwrap()
}

/// The names of a thread's frames, innermost first.
pub fn names(thread: &Thread) -> Vec<&str> {
    thread.frames.iter().map(|frame: &Frame| frame.symbol.as_deref().unwrap_or("?")).collect()
}
