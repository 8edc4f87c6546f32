//! A child that could not be traced: its handler of last resort says what it dies of.

use super::Life;
use crate::capture;
use crate::evidence::{EarlierSignal, Trigger};
use crate::journal::{LastWords, REGISTERS};

impl Life<'_> {
    /// The child could not be traced, and its handler of last resort has written down what it dies of.
    pub(super) fn hear_last_words(&mut self) {
        let Some(words) = self.journal.last_words() else { return };
        let root = self.tree.root();
        let LastWords { tid, signal, code: si_code, address, sender, .. } = words;
        // The words are the child's own, and what is read for them must not be another process's.
        if capture::process::threads_of(root).contains(&tid) && self.findings.wants_more() {
            // The kernel gives an address for what the processor found, a sender for what somebody sent.
            let found = (1..libc::SI_KERNEL).contains(&si_code);
            let sent = (si_code <= 0).then_some(sender);
            let trigger = Trigger::Signal { signal, si_code, address: found.then_some(address), sender: sent };
            let evidence = self.capture(root, Some(tid), trigger, None);
            let (at_ns, pc) = (evidence.at_ns, Some(words.registers[REGISTERS - 2]));
            let signal = EarlierSignal { at_ns, tid, signal, si_code, pc, evidence: Some(evidence.number) };
            self.show(evidence);
            self.findings.note(root, signal);
        }
        if let Err(error) = self.journal.release() {
            self.soft_errors.push(format!("the dying child could not be released: {error}"));
        }
    }
}
