//! Something ran out because the plan kept it: the tool's own doing, whatever code the driver chose to say so with.

use super::{Facts, Judgement, judgement, lines};
use crate::vocabulary::{Confidence, Kind, Owner, Phase};

/// Codes with which drivers report that a table or a memory is full.
const FULL: [i32; 5] = [2, 209, 304, 701, 999];

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let (code, live) = (facts.code?, facts.live_modules?);
    let applies = facts.kind == Kind::ApiError && facts.phase == Phase::Load && FULL.contains(&code) && live >= 2;
    applies.then(|| {
        judgement(
            Owner::Harness,
            Some(Confidence::Likely),
            "exhausted: the plan keeps more modules than the driver can hold",
            lines([
                Some(format!("the same image loaded {live} times before in this process; {live} live modules")),
                Some(format!("code {code} therefore does not mean what it means at the first load")),
                facts.note.clone(),
            ]),
            "run with a smaller share of kept modules (--keep 0 or a larger N) or shorter lives (--life)",
        )
    })
}
