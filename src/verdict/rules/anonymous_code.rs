//! Executable memory of no file and of no image that the tool was given.

use super::{Facts, Judgement, calls_line, judgement, lines};
use crate::vocabulary::{Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    (facts.kind == Kind::Crash && facts.place == Some(Place::Anonymous)).then(|| {
        let caller = facts.caller().map(|caller| format!("called by {caller}"));
        judgement(
            Owner::Insufficient,
            None,
            "the fault lies in generated code of unknown origin",
            lines([caller, facts.place_note.clone(), calls_line(facts)]),
            "give the tool the image whose host code this could be, or repeat with --core and look at the bytes around pc",
        )
    })
}
