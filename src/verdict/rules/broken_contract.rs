//! The program used the driver in a way that the API does not allow. Nobody else is blamed while that explains the fault.

use super::{Facts, Judgement, calls_line, judgement, lines};
use crate::vocabulary::{Confidence, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let violation = facts.violation.as_ref()?;
    let inside = matches!(facts.place, Some(Place::Libcuda | Place::HostObject | Place::HostObjectUnmapped))
        .then(|| "the fault lies inside the driver or what it called, which does not make it the driver's: the illegal call came first".to_owned());
    Some(judgement(
        Owner::Application,
        Some(Confidence::Likely),
        "the program broke the API's contract",
        lines([Some(violation.text.clone()), calls_line(facts), inside]),
        "mend the sequence of calls named above and run again",
    ))
}
