//! A launch that succeeded and computed something else.

use super::{Facts, JournalWord, Judgement, journal_line, judgement, lines};
use crate::vocabulary::{Kind, Owner};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    (facts.kind == Kind::WrongResult).then(|| {
        let text = match facts.journal {
            JournalWord::Legal => "a launch computed something else than its kernel: driver, compiler and device are all possible",
            _ => "a launch computed something else than its kernel",
        };
        judgement(
            Owner::Insufficient,
            None,
            text,
            lines([facts.note.clone(), journal_line(facts)]),
            "run the regular twin beside this image, and this image with --threads 1: what changes the rate names the owner",
        )
    })
}
