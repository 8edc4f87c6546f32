//! Whose fault it is. Pure: facts in, judgement out, no I/O.
//!
//! Rules see neither the kind of the driver nor the name of a planted bug. Place alone is never more than *suspected*; a legal
//! journal makes it *likely*; a contrast between arms that chance does not explain makes it *established*.

mod contract;
mod contrast;
mod facts;
mod family;
mod over_run;
mod rules;

pub use contract::{Violation, check};
pub use contrast::{ArmFacts, Contrast, Relation};
pub use facts::{Facts, JournalWord, of_evidence, of_note};
pub use family::{Family, of as family_of};
pub use over_run::{ArmTally, over_run};
pub use rules::alone;

use crate::vocabulary::{Confidence, Owner};
use serde::{Deserialize, Serialize};

/// An owner with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Whose fault it is.
    pub owner: Owner,
    /// How sure; none for `none` and `insufficient`.
    pub confidence: Option<Confidence>,
    /// One sentence.
    pub text: String,
    /// Why, in words, for and against.
    pub evidence: Vec<String>,
    /// What to do next.
    pub next: String,
}
