//! A child that was killed or stopped from outside says nothing about the driver.

use super::{Facts, Judgement, judgement, lines};
use crate::vocabulary::{Kind, Owner};

/// Signals that no fault of a program raises.
const FROM_OUTSIDE: [i32; 5] = [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let sent = facts.sender.map(|pid| format!("sent by process {pid}"));
    if let Some(signal) = facts.stopped_by.filter(|_| facts.kind == Kind::Hang) {
        return Some(judgement(
            Owner::Harness,
            None,
            "the child was stopped from outside and not continued",
            lines([Some(format!("it stood at signal {signal} while its calls were open")), sent]),
            "look for who stopped it: an operator, a debugger, or job control",
        ));
    }
    let signal = facts.signal.filter(|signal| facts.sent_from_outside || FROM_OUTSIDE.contains(signal))?;
    (facts.kind == Kind::Crash).then(|| {
        judgement(
            Owner::Harness,
            None,
            "the child was killed from outside",
            lines([Some(format!("signal {signal} came from outside and not from what the child did")), sent]),
            "look for who killed it: an operator, a limit, or the kernel's out-of-memory killer (`dmesg`)",
        )
    })
}
