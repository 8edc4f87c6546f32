//! The fault lies in host code that the Tile IR compiler emitted.

use super::{Facts, Judgement, by_journal, calls_line, journal_line, judgement, lines, watch_line};
use crate::vocabulary::{Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    (facts.kind == Kind::Crash && facts.place == Some(Place::HostObject)).then(|| {
        judgement(
            Owner::CudaTile,
            Some(by_journal(facts)),
            "host code that the Tile IR compiler put into the image faulted",
            lines([
                facts.place_note.clone(),
                calls_line(facts),
                journal_line(facts),
                watch_line(facts),
                Some(
                    "against: the driver hands that code its parameters, and could have handed it bad ones".to_owned(),
                ),
            ]),
            "send the image with its compiler's version and flags to NVIDIA/cuda-tile",
        )
    })
}
