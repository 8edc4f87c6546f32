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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Moment, bare};
    use crate::evidence::{Found, Frame, Thread, Watch};
    use crate::vocabulary::Place;

    fn evidence(number: u32, tid: i32, trigger: Trigger, in_handler: bool) -> Evidence {
        let moment = Moment {
            pid: 7,
            tid: Some(tid),
            trigger,
            watch: Watch::Ptrace,
            written: None,
            standing: &[],
            before: BTreeMap::new(),
            journal: None,
            stderr_tail: String::new(),
            soft_errors: Vec::new(),
        };
        let frame = |signal_frame| Frame {
            pc: 1,
            sp: 1,
            module: None,
            module_address: None,
            function: None,
            symbol: None,
            place: Place::Program,
            found: Found::Cfi,
            signal_frame,
        };
        let mut evidence = bare(moment);
        evidence.number = number;
        evidence.threads = vec![Thread { tid, frames: vec![frame(false), frame(in_handler)], ..Thread::default() }];
        evidence
    }

    fn signal(signal: i32) -> Trigger {
        Trigger::Signal { signal, si_code: 1, address: Some(8), sender: None }
    }

    fn faults(findings: Findings) -> Vec<(u32, Option<i32>)> {
        findings.finish().0.iter().map(|fault| (fault.number, fault.masked_as)).collect()
    }

    #[test]
    fn what_it_dies_of_is_the_fault_and_what_it_survived_is_not() {
        let mut findings = Findings::default();
        findings.add(evidence(0, 7, signal(11), false));
        findings.add(evidence(1, 7, signal(6), false));
        assert_eq!(findings.judge(7, 6), [0]);
        assert!(findings.has_fault(7));
        assert_eq!(faults(findings), [(1, None)]);
    }

    #[test]
    fn a_normal_exit_withdraws_everything() {
        let mut findings = Findings::default();
        findings.add(evidence(0, 7, signal(11), false));
        assert_eq!(findings.judge(7, 0), [0]);
        assert!(!findings.has_fault(7) && faults(findings).is_empty());
    }

    #[test]
    fn leaving_from_a_handler_brings_the_signal_to_light() {
        let mut findings = Findings::default();
        findings.add(evidence(0, 7, signal(11), false));
        let mut exit = evidence(1, 7, Trigger::Exit { status: 0 }, true);
        exit.follows = findings.cause_of(&exit);
        assert_eq!(exit.follows, Some(0));
        findings.add(exit);
        assert!(findings.judge(7, 0).is_empty());
        assert_eq!(faults(findings), [(0, Some(0)), (1, None)]);
    }

    #[test]
    fn a_hang_in_another_threads_handler_is_no_consequence() {
        let mut findings = Findings::default();
        findings.add(evidence(0, 7, signal(6), false));
        let hang = evidence(1, 8, Trigger::Hang { open_ns: 1 }, true);
        assert_eq!(findings.cause_of(&hang), None);
    }

    #[test]
    fn both_of_two_simultaneous_faults_stand() {
        let mut findings = Findings::default();
        findings.add(evidence(0, 7, signal(11), false));
        let mut second = evidence(1, 8, signal(11), false);
        second.follows = Some(0);
        findings.add(second);
        assert!(findings.judge(7, 11).is_empty());
        assert_eq!(faults(findings), [(0, None), (1, None)]);
    }

    #[test]
    fn processes_are_judged_each_by_itself() {
        let mut findings = Findings::default();
        findings.add(evidence(0, 7, signal(11), false));
        assert!(findings.judge(9, 11).is_empty());
        assert!(!findings.has_fault(7));
        assert!(findings.has_open_signal(7, 11) && !findings.has_open_signal(9, 11));
    }

    #[test]
    fn signals_are_noted_up_to_a_limit() {
        let mut findings = Findings::default();
        let noted = EarlierSignal { at_ns: 1, tid: 7, signal: 11, si_code: 1, pc: None, evidence: None };
        (0..10_000).for_each(|_| findings.note(7, noted.clone()));
        assert_eq!(findings.signals_of(7).len(), MOST_SIGNALS);
        assert!(findings.signals_of(8).is_empty());
    }
}
