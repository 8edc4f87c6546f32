//! An error that legal calls must not get.

use super::{Facts, JournalWord, Judgement, journal_line, judgement, lines};
use crate::vocabulary::{Confidence, Kind, Owner};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let code = facts.code?;
    let applies = facts.kind == Kind::ApiError && facts.journal == JournalWord::Legal;
    applies.then(|| {
        let call = facts.call.map_or("a call", |c| c.entry());
        judgement(
            Owner::Driver,
            Some(Confidence::Suspected),
            format!("{call} answered {code} to a legal call"),
            lines([journal_line(facts), facts.note.clone()]),
            "repeat with one thread (--threads 1): if it stays away, calls that overlap are needed for it",
        )
    })
}
