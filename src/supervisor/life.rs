//! One child's life, watched: the loop of a trial. The state of the child, and what moves it:
//!
//! ```text
//! waiting at the gate --open--> running <--SIGCONT-- paused
//!                                | | |  '--stop signal--^
//!            fatal-looking signal| | '--hang, deadline, end of the run--> killed --> ended
//!                                v '--exit event: look whether it is a normal one--> ended
//!                    captured, observer told, delivered --> running or ended
//! ```

mod untraced;

use super::events::Events;
use super::findings::Findings;
use super::handover::{self, Handover};
use super::interrupt::StopLevel;
use super::spawn::Gate;
use super::stderr::Tail;
use super::tree::{Happening, SignalStop, Tree};
use super::trial::{End, KillReason, Timings, TrialError, TrialObserver, TrialOutcome, TrialSpec};
use super::watchdog::{Finding, Watchdog};
use crate::capture::{self, ExecLog, HostCode, Moment, Surroundings};
use crate::cubin::bundle;
use crate::evidence::{EarlierSignal, Evidence, Trigger, Watch};
use crate::journal::{CallLog, Journal, JournalSpec, Progress, monotonic_ns};
use crate::plan::{ContextKind, Observe};
use crate::stats::OverlapSampler;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Pace of ticks.
const PACE: Duration = Duration::from_millis(100);
/// How long all threads of a process may take to stand still.
const STOP_LIMIT: Duration = Duration::from_millis(500);
/// How long a killed process may take to go: one in the kernel's hands goes when that lets it.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// Exit codes that our worker may leave with: done, bad plan, could not begin, internal error.
const WORKER_CODES: [i32; 4] = [0, 2, 3, 70];

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

    /// A thread stands at a fatal-looking signal.
    fn signal(&mut self, stop: SignalStop) {
        // First of all: from here on the other threads' last calls are safe.
        let frozen = self.journal.freeze();
        let SignalStop { process, tid, signal, code: si_code, .. } = stop;
        let (at_ns, registers) = (monotonic_ns(), capture::registers_by_name(tid));
        let mut number = None;
        let known = self.taken_ahead.remove(&tid) || self.is_again(&stop, &registers);
        // A signal that nobody handles is the end: that is captured however many came before.
        let worth_it = self.findings.wants_more() || !capture::process::catches(process, signal);
        if !known && worth_it && self.killed.is_none() {
            number = Some(self.findings.next_number());
            let evidence = self.capture(process, Some(tid), trigger(&stop), None);
            self.show(evidence);
            self.second_faults(process, number);
            self.tree.resume(process);
        }
        let pc = registers.get("rip").copied();
        self.findings.note(process, EarlierSignal { at_ns, tid, signal, si_code, pc, evidence: number });
        if frozen.and_then(|()| self.journal.thaw()).is_err() {
            self.soft_errors.push("the journal could not be frozen and thawed".to_owned());
        }
        self.tree.deliver(tid);
    }

    /// Whether this is a known fault come again after its handler reset itself.
    fn is_again(&self, stop: &SignalStop, registers: &BTreeMap<String, u64>) -> bool {
        self.findings.is_again(stop, registers) && !capture::process::catches(stop.process, stop.signal)
    }

    /// Other threads that faulted before they could be stopped: their signals are taken at the same standstill.
    fn second_faults(&mut self, process: i32, first: Option<u32>) {
        for stop in self.tree.waiting_signals(process) {
            if self.findings.wants_more() {
                let evidence = self.capture(process, Some(stop.tid), trigger(&stop), first);
                self.show(evidence);
                self.taken_ahead.insert(stop.tid);
            }
        }
    }

    /// Takes evidence of a process, whose threads stand still afterwards.
    fn capture(&mut self, process: i32, tid: Option<i32>, trigger: Trigger, follows: Option<u32>) -> Evidence {
        let at_ns = monotonic_ns();
        let standing = self.tree.standing(process);
        let before = capture::before_stop(process, &standing);
        let soft_errors = self.tree.stop(process, STOP_LIMIT);
        self.log.iter_mut().for_each(ExecLog::drain);
        self.tail.drain();
        let is_root = process == self.tree.root();
        let standing = self.tree.standing(process);
        let written = self.tree.refused().and_then(|_| self.journal.last_words());
        let written = written.filter(|words| Some(words.tid) == tid);
        let moment = Moment {
            pid: process,
            tid,
            trigger,
            watch: if self.tree.traced() {
                Watch::Ptrace
            } else if written.is_some() {
                Watch::Handler
            } else {
                Watch::Status
            },
            written,
            standing: &standing,
            before,
            journal: is_root.then(|| self.journal.snapshot(self.spec.last_calls)),
            stderr_tail: self.tail.text(),
            soft_errors,
        };
        let mut evidence = capture::capture(moment, &self.around, self.log.as_ref());
        evidence.at_ns = at_ns;
        if let Some(before) = self.caught_at_begin.as_ref().filter(|_| is_root) {
            let now = &evidence.process.signals_caught;
            let changed = (1..=64).filter(|signal| before.contains(signal) != now.contains(signal));
            evidence.process.handlers_changed = Some(changed.collect());
        }
        evidence.number = self.findings.next_number();
        if let Some(folder) = &self.spec.core_dir {
            let name = format!("core.{process}.{}", evidence.number);
            match capture::write_core(&folder.join(&name), process, tid, &standing, &evidence.trigger) {
                Ok(_) => evidence.core = Some(name),
                Err(error) => evidence.soft_errors.push(format!("core: {error}")),
            }
        }
        evidence.earlier_signals = self.findings.signals_of(process);
        evidence.paused_by = self.paused.filter(|_| is_root).map(|(signal, _)| signal);
        evidence.follows = follows.or_else(|| self.findings.cause_of(&evidence));
        evidence
    }

    /// Shows evidence to the observer, who puts it on disk, and keeps it.
    fn show(&mut self, evidence: Evidence) {
        self.observer.fault(&evidence);
        self.findings.add(evidence);
    }

    /// A thread is about to exit: is that how a worker leaves?
    fn exiting(&mut self, process: i32, tid: i32, status: i32) {
        if self.killed.is_some() {
            return;
        }
        let signal = status & 0x7f;
        if signal != 0 {
            if !self.findings.has_open_signal(process, signal) && !self.findings.has_exit(process) {
                let evidence = self.capture(process, None, Trigger::Exit { status }, None);
                self.show(evidence);
                self.tree.resume(process);
            }
            return;
        }
        if !capture::leaves_its_process(tid) {
            return;
        }
        let abnormal = process == self.tree.root() && !self.is_normal_exit(status >> 8 & 0xff);
        if abnormal || !self.findings.signals_of(process).is_empty() {
            let evidence = self.capture(process, Some(tid), Trigger::Exit { status }, None);
            if abnormal || evidence.follows.is_some() {
                self.show(evidence);
            }
            self.tree.resume(process);
        }
    }

    fn is_normal_exit(&self, code: i32) -> bool {
        WORKER_CODES.contains(&code) && (code != 0 || self.journal.progress().finished)
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

    /// Ends what is left and says what came of it.
    pub(super) fn end(mut self) -> TrialOutcome {
        self.log.iter_mut().for_each(ExecLog::drain);
        if let Some(lost) = self.log.as_ref().map(ExecLog::lost).filter(|&lost| lost > 0) {
            self.soft_errors.push(format!("{lost} executable mappings were not logged: the ring was full"));
        }
        let pid = self.tree.root();
        let end = self.how_it_ended();
        self.tail.drain();
        if matches!(end, End::Signaled(_)) && !self.findings.has_fault(pid) {
            self.record_bare_end(pid);
        }
        let (journal, totals) = (self.journal.snapshot(self.spec.last_calls), self.journal.totals());
        self.journal.sample_overlaps(&mut self.sampler);
        let exposure = self.sampler.exposure(&totals);
        self.close_call_log();
        self.timings.began_ns = self.timings.began_ns.or(journal.began_ns);
        let left = self.tree.finish(KILL_LIMIT);
        self.soft_errors.extend(left);
        let (faults, handled) = self.findings.finish();
        TrialOutcome {
            pid,
            end,
            faults,
            handled,
            journal,
            totals,
            exposure,
            timings: self.timings,
            stderr_tail: self.tail.text(),
            stderr_bytes: self.tail.total(),
            descendants: self.descendants,
            soft_errors: self.soft_errors,
        }
    }

    /// Keeps the calls that are still in the rings, and says how many were lost.
    fn close_call_log(&mut self) {
        let Some(mut log) = self.call_log.take() else { return };
        self.journal.drain_into(&mut log);
        let end = log.finish();
        if end.lost > 0 {
            self.soft_errors.push(format!(
                "{} of {} calls are not in the file of calls",
                end.lost,
                end.lost + end.written
            ));
        }
        if let Some(error) = end.failed {
            self.soft_errors.push(format!("the file of calls ends early: {error}"));
        }
    }

    fn how_it_ended(&self) -> End {
        let status = self.status.unwrap_or(libc::SIGKILL);
        match (self.killed, status & 0x7f) {
            (Some(reason), libc::SIGKILL) => End::Killed(reason),
            (None, libc::SIGKILL) if self.status.is_none() => End::Killed(KillReason::Ended),
            (_, 0) => End::Exited(status >> 8 & 0xff),
            (_, signal) => End::Signaled(signal),
        }
    }

    /// A death that nothing was taken of: its status and its journal are all that there is.
    fn record_bare_end(&mut self, pid: i32) {
        let trigger = Trigger::Exit { status: self.status.unwrap_or_default() };
        let watch = if self.tree.traced() { Watch::Ptrace } else { Watch::Status };
        let moment = Moment {
            pid,
            tid: None,
            trigger,
            watch,
            written: None,
            standing: &[],
            before: Default::default(),
            journal: Some(self.journal.snapshot(self.spec.last_calls)),
            stderr_tail: self.tail.text(),
            soft_errors: vec!["the child was gone before anything could be read of it".to_owned()],
        };
        let mut evidence = capture::bare(moment);
        evidence.number = self.findings.next_number();
        evidence.earlier_signals = self.findings.signals_of(pid);
        self.observer.fault(&evidence);
        self.findings.add_fault(evidence);
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

fn trigger(stop: &SignalStop) -> Trigger {
    let SignalStop { signal, code, address, sender, .. } = *stop;
    Trigger::Signal { signal, si_code: code, address, sender }
}
