//! What a run keeps of a trial in memory once its record is on disk: enough to decide how to go on and how it ended.

use crate::store::{FaultRecord, TrialEnd, TrialRecord};
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
    /// Launches made until its first fault; where it had none, all.
    pub launches_to_fault: u64,
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
        let launches = trial.calls.get(&Call::Launch).map_or(0, |c| c.count);
        let to_fault = trial.faults.iter().map(|fault| launches_until(trial, fault, launches)).min();
        Outline {
            arm: trial.arm as u32,
            block: trial.block,
            launches,
            launches_to_fault: to_fault.unwrap_or(launches),
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

/// How many of its launches a child had made when it had this fault. What it died of ended them; what it survived it had after
/// the share of them that its share of the child's time gives. (Counted in full, a fault of the faster arm would seem to come
/// later than the same fault of the slower one.)
fn launches_until(trial: &TrialRecord, fault: &FaultRecord, launches: u64) -> u64 {
    if matches!(fault.facts.kind, Kind::Crash | Kind::Hang | Kind::Masked) || trial.seconds <= 0.0 {
        return launches;
    }
    (launches as f64 * (fault.after_seconds / trial.seconds).clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{fault, trial};

    #[test]
    fn a_fault_that_was_survived_came_after_its_share_of_the_launches() {
        let with = |faults: &[(Kind, f64)]| {
            let faults = faults.iter().map(|&(kind, after)| fault(kind, after)).collect();
            Outline::from(&TrialRecord { faults, ..trial(0) }).launches_to_fault
        };
        assert_eq!(with(&[]), 1_000);
        assert_eq!(with(&[(Kind::Crash, 0.4)]), 1_000, "the launches ended with it");
        assert_eq!(with(&[(Kind::ApiError, 0.25)]), 250);
        assert_eq!(with(&[(Kind::WrongResult, 0.5), (Kind::ApiError, 0.75), (Kind::Crash, 1.0)]), 500);
        assert_eq!(with(&[(Kind::ApiError, f64::NAN)]), 0);
    }
}
