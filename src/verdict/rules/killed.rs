//! A child that was killed from outside says nothing about the driver.

use super::{Facts, Judgement, judgement, lines};
use crate::vocabulary::{Kind, Owner};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let signal = facts.signal?;
    let from_outside = matches!(signal, libc::SIGKILL | libc::SIGTERM | libc::SIGINT | libc::SIGHUP | libc::SIGQUIT);
    let sent = facts.sender.map(|pid| format!("sent by process {pid}"));
    (facts.kind == Kind::Crash && from_outside).then(|| {
        judgement(
            Owner::Harness,
            None,
            "the child was killed from outside",
            lines([Some(format!("signal {signal} is not one that a program's own fault raises")), sent]),
            "look for who killed it: an operator, a limit, or the kernel's out-of-memory killer (`dmesg`)",
        )
    })
}
