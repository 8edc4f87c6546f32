//! What was taken of a child so far, and what of it turns out to be a fault when the child ends. Pure.
//!
//! Evidence is taken at a first chance, when nobody knows whether the program handles the signal. What a process dies of
//! is the fault; a signal that it survived is only noted; one whose handler never came back is the cause of what follows.

use super::tree::SignalStop;
use crate::evidence::{EarlierSignal, Evidence, Trigger};
use std::collections::BTreeMap;

/// First-chance signals that are noted; a program that handles thousands must not fill memory.
const MOST_SIGNALS: usize = 256;
/// Captures of first-chance signals in one trial.
const MOST_CAPTURES: u32 = 8;

#[derive(Debug)]
struct Taken {
    evidence: Evidence,
    open: bool,
    fault: bool,
}

/// All that was taken in one trial.
#[derive(Debug, Default)]
pub(super) struct Findings {
    taken: Vec<Taken>,
    signals: Vec<(i32, EarlierSignal)>,
}

impl Findings {
    /// The number that the next evidence has.
    pub(super) fn next_number(&self) -> u32 {
        self.taken.len() as u32
    }

    /// Whether one more capture of a first-chance signal is worth its time.
    pub(super) fn wants_more(&self) -> bool {
        self.next_number() < MOST_CAPTURES
    }

    /// Notes a fatal-looking signal of a process.
    pub(super) fn note(&mut self, process: i32, signal: EarlierSignal) {
        if self.signals.len() < MOST_SIGNALS {
            self.signals.push((process, signal));
        }
    }

    /// Fatal-looking signals that a process had so far.
    pub(super) fn signals_of(&self, process: i32) -> Vec<EarlierSignal> {
        self.signals.iter().filter(|(of, _)| *of == process).map(|(_, signal)| signal.clone()).collect()
    }

    /// Keeps evidence that was shown to the observer.
    pub(super) fn add(&mut self, evidence: Evidence) {
        self.taken.push(Taken { evidence, open: true, fault: false });
    }

    /// The evidence of a signal of which this evidence shows the consequence: a thread of it is still in a handler, and it
    /// was that thread that the signal was delivered to.
    pub(super) fn cause_of(&self, evidence: &Evidence) -> Option<u32> {
        let inside = |tid: i32| {
            let thread = evidence.threads.iter().find(|thread| thread.tid == tid);
            thread.is_some_and(|thread| thread.frames.iter().skip(1).any(|frame| frame.signal_frame))
        };
        let open = self.taken.iter().filter(|taken| taken.open && taken.evidence.pid == evidence.pid);
        let mut signals = open.filter(|taken| matches!(taken.evidence.trigger, Trigger::Signal { .. }));
        signals.find(|taken| taken.evidence.tid.is_some_and(inside)).map(|taken| taken.evidence.number)
    }

    /// Whether evidence of this signal was taken in a process and not yet judged.
    pub(super) fn has_open_signal(&self, process: i32, wanted: i32) -> bool {
        self.open_of(process).any(|evidence| is_signal(evidence, wanted))
    }

    /// Whether this is the signal of evidence that is still open, come again: a handler that resets the disposition and
    /// returns, as run-time systems have, lets the same instruction fault a second time.
    pub(super) fn is_again(&self, stop: &SignalStop, registers: &BTreeMap<String, u64>) -> bool {
        let same = |evidence: &Evidence| {
            let trigger =
                Trigger::Signal { signal: stop.signal, si_code: stop.code, address: stop.address, sender: stop.sender };
            let thread = evidence.threads.iter().find(|thread| thread.tid == stop.tid);
            evidence.trigger == trigger && thread.is_some_and(|thread| thread.registers == *registers)
        };
        !registers.is_empty() && self.open_of(stop.process).any(same)
    }

    /// Whether the exit of a process was captured already.
    pub(super) fn has_exit(&self, process: i32) -> bool {
        self.open_of(process).any(|evidence| matches!(evidence.trigger, Trigger::Exit { .. }))
    }

    fn open_of(&self, process: i32) -> impl Iterator<Item = &Evidence> {
        let open = self.taken.iter().filter(move |taken| taken.open && taken.evidence.pid == process);
        open.map(|taken| &taken.evidence)
    }

    /// A process ended with this wait status: what of its evidence is a fault? Answers the numbers of what is not.
    pub(super) fn judge(&mut self, process: i32, status: i32) -> Vec<u32> {
        let signal = status & 0x7f;
        let decisive = |evidence: &Evidence| match evidence.trigger {
            Trigger::Signal { signal: its, .. } => signal != 0 && its == signal,
            Trigger::Hang { .. } | Trigger::Exit { .. } => true,
        };
        let last = self.open_of(process).filter(|evidence| decisive(evidence)).last();
        let mut faults: Vec<u32> = last.map(|evidence| evidence.number).into_iter().collect();
        faults.extend(last.and_then(|evidence| evidence.follows));
        let followers = self.open_of(process).filter(|evidence| evidence.follows.is_some_and(|n| faults.contains(&n)));
        let followers: Vec<u32> = followers.map(|evidence| evidence.number).collect();
        faults.extend(followers);
        let mut withdrawn = Vec::new();
        for taken in self.taken.iter_mut().filter(|taken| taken.open && taken.evidence.pid == process) {
            taken.open = false;
            taken.fault = faults.contains(&taken.evidence.number);
            if taken.fault && signal == 0 && is_any_signal(&taken.evidence) && process_exited(status) {
                taken.evidence.masked_as = Some(status >> 8 & 0xff);
            }
            if !taken.fault {
                withdrawn.push(taken.evidence.number);
            }
        }
        withdrawn
    }

    /// Whether anything of a process was found to be a fault.
    pub(super) fn has_fault(&self, process: i32) -> bool {
        self.taken.iter().any(|taken| taken.fault && taken.evidence.pid == process)
    }

    /// Evidence that is a fault for sure.
    pub(super) fn add_fault(&mut self, evidence: Evidence) {
        self.taken.push(Taken { evidence, open: false, fault: true });
    }

    /// The faults in the order in which they were taken, and the signals that were handled.
    pub(super) fn finish(self) -> (Vec<Evidence>, Vec<EarlierSignal>) {
        let faults: Vec<Evidence> =
            self.taken.into_iter().filter(|taken| taken.fault).map(|taken| taken.evidence).collect();
        let is_fault = |signal: &EarlierSignal| faults.iter().any(|fault| Some(fault.number) == signal.evidence);
        let handled = self.signals.into_iter().map(|(_, signal)| signal).filter(|signal| !is_fault(signal)).collect();
        (faults, handled)
    }
}

fn is_signal(evidence: &Evidence, wanted: i32) -> bool {
    matches!(evidence.trigger, Trigger::Signal { signal, .. } if signal == wanted)
}

fn is_any_signal(evidence: &Evidence) -> bool {
    matches!(evidence.trigger, Trigger::Signal { .. })
}

fn process_exited(status: i32) -> bool {
    status & 0x7f == 0
}
