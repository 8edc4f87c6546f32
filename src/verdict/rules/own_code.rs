//! The fault lies in the worker itself.

use super::{Facts, Judgement, calls_line, judgement, lines};
use crate::vocabulary::{Confidence, Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let own = facts.place == Some(Place::Worker) && facts.call.is_none();
    (facts.kind == Kind::Crash && own).then(|| {
        judgement(
            Owner::Harness,
            Some(Confidence::Likely),
            "the fault lies in this tool's own code, outside any driver call",
            lines([calls_line(facts), Some("no driver call was in flight in the faulting thread".to_owned())]),
            "this is a bug of this tool: send the run's folder to its authors",
        )
    })
}
