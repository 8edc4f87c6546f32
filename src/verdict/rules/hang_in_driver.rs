//! A driver call that does not return.

use super::{Facts, Judgement, by_journal, calls_line, journal_line, judgement, lines, watch_line};
use crate::vocabulary::{Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let call = facts.call.filter(|_| facts.kind == Kind::Hang)?;
    if !facts.stack.contains(&Place::Libcuda) {
        return None;
    }
    Some(judgement(
        Owner::Driver,
        Some(by_journal(facts)),
        format!("{call} does not return"),
        lines([
            Some("the stack of the waiting thread goes through the driver library".to_owned()),
            calls_line(facts),
            journal_line(facts),
            watch_line(facts),
        ]),
        "compare with --threads 1 and --lock all: a hang that needs two threads is a lock order",
    ))
}
