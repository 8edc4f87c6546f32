//! Taking evidence while the child stands still: at a signal, at an exit, at a hang.

use super::Life;
use crate::capture::{self, ExecLog, Moment};
use crate::evidence::{EarlierSignal, Evidence, Trigger, Watch};
use crate::journal::NoteKind;
use crate::journal::monotonic_ns;
use crate::supervisor::tree::SignalStop;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long all threads of a process may take to stand still.
const STOP_LIMIT: Duration = Duration::from_millis(500);
/// Exit codes that our worker may leave with: done, bad plan, could not begin, internal error.
/// The worker's exit code for a fault of its own.
const INTERNAL: i32 = 70;

impl Life<'_> {
    /// A thread stands at a fatal-looking signal.
    pub(super) fn signal(&mut self, stop: SignalStop) {
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
    pub(super) fn capture(
        &mut self,
        process: i32,
        tid: Option<i32>,
        trigger: Trigger,
        follows: Option<u32>,
    ) -> Evidence {
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
    pub(super) fn show(&mut self, evidence: Evidence) {
        self.observer.fault(&evidence);
        self.findings.add(evidence);
    }

    /// A thread is about to exit: is that how a worker leaves?
    pub(super) fn exiting(&mut self, process: i32, tid: i32, status: i32) {
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
        // A status is the worker's own only where the journal has its word for it: the driver can leave too.
        let progress = self.journal.progress();
        // A program that never took the journal up cannot have put a word there: its status is all that there is.
        let attached = progress.threads.iter().any(|thread| thread.tid != 0);
        let noted = |kind: NoteKind| self.journal.snapshot(0).notes.iter().any(|note| note.kind == kind);
        match code {
            0 => progress.finished,
            2 | 3 | INTERNAL if !attached => true,
            2 => noted(NoteKind::BadPlan),
            3 => noted(NoteKind::SetupFailed),
            INTERNAL => progress.oldest_open().is_none(),
            _ => false,
        }
    }
}

fn trigger(stop: &SignalStop) -> Trigger {
    let SignalStop { signal, code, address, sender, .. } = *stop;
    Trigger::Signal { signal, si_code: code, address, sender }
}
