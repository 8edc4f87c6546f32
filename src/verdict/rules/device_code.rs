//! A sticky code: the device met an illegal instruction or address, and the context is lost.

use super::{Facts, Judgement, by_journal, journal_line, judgement, lines};
use crate::vocabulary::{Confidence, Kind, Owner};

/// Codes after which a context answers nothing else.
pub const STICKY: [i32; 10] = [700, 702, 710, 714, 715, 716, 717, 718, 719, 720];

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let code = facts.code.filter(|code| STICKY.contains(code))?;
    (facts.kind == Kind::ApiError).then(|| {
        let known = Some(format!("code {code} is sticky: the device code of a launch before it did something illegal"));
        let evidence = lines([known, journal_line(facts), facts.note.clone()]);
        if facts.tile && by_journal(facts) == Confidence::Likely {
            let text = "device code of this Tile IR image is suspected";
            judgement(
                Owner::CudaTile,
                Some(Confidence::Suspected),
                text,
                evidence,
                "run the regular twin of this image beside it, and compute-sanitizer on one launch",
            )
        } else {
            judgement(
                Owner::Insufficient,
                None,
                "a kernel did something illegal; whose code it is, the run does not show",
                evidence,
                "run compute-sanitizer on one launch of this image",
            )
        }
    })
}
