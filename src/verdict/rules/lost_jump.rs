//! The program counter itself is no code, and the driver is who jumped there.

use super::{Facts, Judgement, calls_line, journal_line, judgement, lines, watch_line};
use crate::vocabulary::{Confidence, Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let jumped = facts.place == Some(Place::Unmapped) && facts.caller() == Some(Place::Libcuda);
    (facts.kind == Kind::Crash && jumped).then(|| {
        judgement(
            Owner::Driver,
            Some(Confidence::Suspected),
            "the driver jumped to an address that is not code",
            lines([
                Some("the return address on top of the stack lies in the driver library".to_owned()),
                calls_line(facts),
                journal_line(facts),
                watch_line(facts),
            ]),
            "run the regular twin beside this image, and --lock unload",
        )
    })
}
