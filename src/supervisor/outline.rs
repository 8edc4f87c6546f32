//! What a run keeps of a trial in memory once its record is on disk: enough to decide how to go on and how it ended.

use crate::store::{TrialEnd, TrialRecord};
use crate::vocabulary::{Call, Kind, Owner};

/// A trial in a few words. Small, so that a run of a million children stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Index of its arm.
    pub arm: u32,
    /// Its block.
    pub block: u64,
    /// Launches made.
    pub launches: u64,
    /// Launches that overlapped an unload.
    pub overlaps: u64,
    /// Faults found.
    pub faults: u32,
    /// Exit code; none: it did not end by itself.
    pub exit: Option<u8>,
    /// It finished at least one load with success.
    pub worked: bool,
    /// All its faults say that something is missing here.
    pub environment: bool,
    /// Its findings do not count.
    pub contaminated: bool,
}

impl From<&TrialRecord> for Outline {
    fn from(trial: &TrialRecord) -> Outline {
        let done = |call: &Call| trial.calls.get(call).is_some_and(|c| c.count > c.errors);
        let missing = |owner: Owner, kind: Kind| owner == Owner::Environment && kind == Kind::ApiError;
        Outline {
            arm: trial.arm as u32,
            block: trial.block,
            launches: trial.calls.get(&Call::Launch).map_or(0, |c| c.count),
            overlaps: trial.exposure.overlaps.launch_during_unload,
            faults: trial.faults.len() as u32,
            exit: match trial.end {
                TrialEnd::Exited { code } => u8::try_from(code).ok(),
                _ => None,
            },
            worked: done(&Call::Load) || done(&Call::LibraryLoad),
            environment: trial.faults.iter().all(|f| missing(f.judgement.owner, f.facts.kind)),
            contaminated: trial.contaminated,
        }
    }
}
