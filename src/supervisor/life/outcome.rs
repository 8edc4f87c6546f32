//! What came of a child that has ended.

use super::{KILL_LIMIT, Life};
use crate::capture::{self, ExecLog, Moment};
use crate::evidence::{Trigger, Watch};
use crate::supervisor::trial::{End, KillReason, TrialOutcome};

impl Life<'_> {
    /// Ends what is left and says what came of it.
    pub(in crate::supervisor) fn end(mut self) -> TrialOutcome {
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
