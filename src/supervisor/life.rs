//! One child's life, watched: the loop of a trial. The state of the child, and what moves it:
//!
//! ```text
//! waiting at the gate --open--> running <--SIGCONT-- paused
//!                                | | |  '--stop signal--^
//!            fatal-looking signal| | '--hang, deadline, end of the run--> killed --> ended
//!                                v '--exit event: look whether it is a normal one--> ended
//!                    captured, observer told, delivered --> running or ended
//! ```

mod outcome;
mod taking;
mod untraced;

use super::events::Events;
use super::findings::Findings;
use super::handover::{self, Handover};
use super::interrupt::StopLevel;
use super::spawn::Gate;
use super::stderr::Tail;
use super::tree::{Happening, Tree};
use super::trial::{KillReason, Timings, TrialError, TrialObserver, TrialSpec};
use super::watchdog::{Finding, Watchdog};
use crate::capture::{self, ExecLog, HostCode, Surroundings};
use crate::cubin::bundle;
use crate::evidence::Trigger;
use crate::journal::{CallLog, Journal, JournalSpec, Progress, monotonic_ns};
use crate::plan::{ContextKind, Observe};
use crate::stats::OverlapSampler;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Pace of ticks.
const PACE: Duration = Duration::from_millis(100);
/// How long a killed process may take to go: one in the kernel's hands goes when that lets it.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A child between its start and its end.
pub(super) struct Life<'a> {
    spec: &'a TrialSpec,
    observer: &'a mut dyn TrialObserver,
    tree: Tree,
    journal: Journal,
    tail: Tail,
    events: Events,
    log: Option<ExecLog>,
    watchdog: Watchdog,
    findings: Findings,
    around: Surroundings,
    sampler: OverlapSampler,
    call_log: Option<CallLog>,
    killed: Option<KillReason>,
    status: Option<i32>,
    paused: Option<(i32, u64)>,
    asked_to_stop_ns: Option<u64>,
    /// Signals that the child had handlers for when its loop began.
    caught_at_begin: Option<Vec<i32>>,
    /// Threads whose signal was captured before its turn, together with another's.
    taken_ahead: BTreeSet<i32>,
    descendants: u64,
    timings: Timings,
    soft_errors: Vec<String>,
}

impl<'a> Life<'a> {
    /// Starts the child, begins to watch it, and opens its gate.
    pub(super) fn begin(spec: &'a TrialSpec, observer: &'a mut dyn TrialObserver) -> Result<Life<'a>, TrialError> {
        let scripted = spec.order.workload.script.iter().map(|op| op.thread + 1).max().unwrap_or(0);
        let threads = spec.order.workload.threads.max(scripted);
        let journal = Journal::create(&JournalSpec { threads, ring_capacity: spec.ring_capacity });
        let journal = journal.map_err(TrialError::Prepare)?;
        let (tail, stderr) = Tail::new(spec.stderr_tail).map_err(TrialError::Prepare)?;
        let (gate, gate_end) = Gate::new().map_err(TrialError::Prepare)?;
        let handover = Handover::new(spec).map_err(TrialError::Prepare)?;
        let stop = spec.stop.subscribe().map_err(TrialError::Prepare)?;
        let events = Events::new(stop, PACE).map_err(TrialError::Prepare)?;
        let spawned_ns = monotonic_ns();
        let launch = handover.launch(spec, stderr.as_fd(), journal.fd(), gate_end.as_fd());
        let tree = Tree::start(launch, gate, spec.observe)?;
        let mut life = Life {
            spec,
            observer,
            watchdog: Watchdog::new(spec.patience(), spawned_ns),
            log: None,
            findings: Findings::default(),
            around: surroundings(spec),
            sampler: OverlapSampler::new(spec.order.workload.context != ContextKind::PerThread),
            call_log: None,
            killed: None,
            status: None,
            paused: None,
            asked_to_stop_ns: None,
            caught_at_begin: None,
            taken_ahead: BTreeSet::new(),
            descendants: 0,
            timings: Timings { spawned_ns, ..Timings::default() },
            soft_errors: Vec::new(),
            tree,
            journal,
            tail,
            events,
        };
        match life.open() {
            Ok(()) => Ok(life),
            Err(error) => {
                life.tree.finish(KILL_LIMIT);
                Err(error)
            }
        }
    }

    fn open(&mut self) -> Result<(), TrialError> {
        if let Some(path) = &self.spec.call_log {
            match CallLog::create(path, u64::MAX) {
                Ok(log) => self.call_log = Some(log),
                Err(error) => self.soft_errors.push(format!("calls are not kept: {error}")),
            }
        }
        if let Some(error) = self.tree.refused() {
            self.soft_errors
                .push(format!("ptrace was refused ({error}): only a handler in the child can say what it dies of"));
        }
        if self.spec.observe == Observe::Full {
            match ExecLog::of(self.tree.root()) {
                Ok(log) => self.log = Some(log),
                Err(error) => self.soft_errors.push(format!("executable mappings are not logged: {error}")),
            }
        }
        handover::limit(self.tree.root(), self.spec)?;
        self.observer.started(self.tree.root());
        self.tree.open_gate().map_err(TrialError::Watch)
    }

    /// Watches the child until it has ended.
    pub(super) fn watch(&mut self) -> Result<(), TrialError> {
        while self.status.is_none() {
            let ready = self.events.wait(&self.tree, &self.tail, self.log.as_ref()).map_err(TrialError::Watch)?;
            if ready.stderr {
                self.tail.drain();
            }
            if ready.log || ready.tick {
                self.log.iter_mut().for_each(ExecLog::drain);
            }
            while let Some(happening) = self.tree.next_happening().map_err(TrialError::Watch)? {
                self.happened(happening);
                if self.status.is_some() {
                    return Ok(());
                }
            }
            self.heed_stop();
            if ready.tick {
                self.tick();
            }
        }
        Ok(())
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Signal(stop) => self.signal(stop),
            Happening::Exiting { process, tid, status } => {
                self.exiting(process, tid, status);
                self.tree.deliver(tid);
            }
            Happening::Paused { process, signal } if process == self.tree.root() => {
                self.paused = Some((signal, monotonic_ns()));
            }
            Happening::Continued { process } if process == self.tree.root() => {
                self.paused = None;
                self.watchdog.was_paused(monotonic_ns());
            }
            Happening::Started { .. } => self.descendants += 1,
            Happening::Ended { process, status } => {
                if process == self.tree.root() {
                    (self.status, self.timings.ended_ns) = (Some(status), monotonic_ns());
                }
                self.judge(process, status);
            }
            Happening::Paused { .. } | Happening::Continued { .. } => {}
        }
    }

    fn judge(&mut self, process: i32, status: i32) {
        for number in self.findings.judge(process, status) {
            self.observer.withdrawn(number);
        }
    }

    fn tick(&mut self) {
        let progress = self.journal.progress();
        if self.timings.began_ns.is_none() && progress.began_ns.is_some() {
            self.timings.began_ns = progress.began_ns;
            self.caught_at_begin = capture::process::caught_by(self.tree.root());
        }
        self.journal.sample_overlaps(&mut self.sampler);
        self.call_log.iter_mut().for_each(|log| self.journal.drain_into(log));
        self.observer.tick(&progress);
        if self.tree.refused().is_some() {
            self.hear_last_words();
        }
        if self.killed.is_some() {
            return;
        }
        if let Some((signal, since_ns)) = self.paused {
            let open_ns = progress.read_ns.saturating_sub(since_ns);
            if open_ns >= self.spec.patience().hang_after_ns {
                self.soft_errors.push(format!("the child was stopped by signal {signal} and nobody continued it"));
                self.hang(&progress, None, open_ns, KillReason::Stopped);
            }
            return;
        }
        if let Some(finding) = self.watchdog.look(&progress) {
            let reason = match finding {
                Finding::CallOpen { .. } | Finding::Still { .. } => KillReason::Hang,
                Finding::NeverBegan { .. } => KillReason::NeverBegan,
                Finding::Overdue { .. } => KillReason::Overdue,
            };
            self.hang(&progress, finding.tid(), finding.open_ns(), reason);
        }
    }

    fn hang(&mut self, progress: &Progress, tid: Option<i32>, open_ns: u64, reason: KillReason) {
        let root = self.tree.root();
        let tid = tid.or_else(|| progress.oldest_open().map(|(index, _, _)| progress.threads[index].tid));
        let evidence = self.capture(root, tid.filter(|&tid| tid > 0), Trigger::Hang { open_ns }, None);
        self.show(evidence);
        self.kill(reason);
    }

    fn kill(&mut self, reason: KillReason) {
        self.killed = Some(reason);
        self.tree.kill_root();
    }

    /// Does what the wish to end asks for.
    fn heed_stop(&mut self) {
        if self.killed.is_some() {
            return;
        }
        match (self.spec.stop.level(), self.asked_to_stop_ns) {
            (StopLevel::Run, _) => {}
            (StopLevel::Kill, _) => self.kill(KillReason::Ended),
            (StopLevel::Finish, None) => {
                self.asked_to_stop_ns = Some(monotonic_ns());
                if let Err(error) = self.journal.request_stop() {
                    self.soft_errors.push(format!("the child could not be asked to stop: {error}"));
                }
            }
            (StopLevel::Finish, Some(since_ns)) => {
                let waited = monotonic_ns().saturating_sub(since_ns);
                if waited > self.spec.patience().hang_after_ns.saturating_mul(2) {
                    self.hang(&self.journal.progress(), None, waited, KillReason::Unheeding);
                }
            }
        }
    }
}

/// What is known of the run's files, and of this trial's image.
fn surroundings(spec: &TrialSpec) -> Surroundings {
    let mut around = spec.around.clone();
    let name = spec.order.image_path.display().to_string();
    if around.hosts.iter().all(|code| code.image_name != name) {
        let images = bundle::members(&spec.image);
        around.hosts.extend(images.into_iter().filter_map(|image| HostCode::of_cubin(&name, image)));
    }
    let resolved = |path: &Path| std::fs::canonicalize(path).ok();
    around.known.driver = around.known.driver.or_else(|| resolved(&spec.order.driver));
    around.known.worker = around.known.worker.or_else(|| resolved(&spec.program.0));
    around
}
