//! One judgement over all arms of a run.

use super::{Contrast, Judgement};
use crate::vocabulary::{Confidence, Owner};
use std::collections::BTreeMap;

/// What one arm contributes.
#[derive(Clone, Debug)]
pub struct ArmTally {
    /// Its name.
    pub name: String,
    /// Launches, or overlaps where the plan allows any: what its rate is per.
    pub exposure: u64,
    /// What that is called.
    pub yardstick: String,
    /// Its faults, each judged alone.
    pub faults: Vec<Judgement>,
}

/// Judges a run by the faults of its arms and by what changes their rate.
pub fn over_run(arms: &[ArmTally], contrasts: &[Contrast]) -> Judgement {
    let faults: Vec<&Judgement> = arms.iter().flat_map(|arm| &arm.faults).collect();
    if faults.is_empty() {
        return nothing_found(arms);
    }
    let mut votes: BTreeMap<Owner, Vec<&Judgement>> = BTreeMap::new();
    for fault in &faults {
        votes.entry(fault.owner).or_default().push(fault);
    }
    // The owner of most faults; a tie goes to the one that is surer, and never to `insufficient`.
    let (owner, theirs) = votes
        .iter()
        .max_by_key(|(owner, theirs)| {
            (**owner != Owner::Insufficient, theirs.len(), theirs.iter().map(|j| j.confidence).max())
        })
        .map(|(owner, theirs)| (*owner, theirs))
        .unwrap_or((Owner::Insufficient, &votes[&faults[0].owner]));
    let best = theirs.iter().max_by_key(|j| j.confidence).unwrap_or(&faults[0]);
    let mut evidence = best.evidence.clone();
    evidence.extend(
        votes
            .iter()
            .filter(|(other, _)| **other != owner)
            .map(|(other, theirs)| format!("against: {} of {} faults point to {other}", theirs.len(), faults.len())),
    );
    evidence.extend(contrasts.iter().map(Contrast::line));
    evidence.extend(arms.iter().map(arm_line));
    let confidence = confidence(owner, best, contrasts);
    let text = match contrasts.iter().find_map(Contrast::says) {
        Some(says) => format!("{}: {says}", best.text),
        None => best.text.clone(),
    };
    Judgement { owner, confidence, text, evidence, next: next(best, confidence) }
}

/// Place and a legal journal are *likely*; with a contrast that chance does not explain they are *established*. A place alone
/// is raised one step by it. What a contrast does not bear on (a missing library, an illegal call) stays as it is.
fn confidence(owner: Owner, best: &Judgement, contrasts: &[Contrast]) -> Option<Confidence> {
    let sure = contrasts.iter().any(Contrast::is_sure);
    let borne_on = matches!(owner, Owner::Driver | Owner::CudaTile);
    match best.confidence {
        _ if owner == Owner::Insufficient => None,
        Some(Confidence::Likely) if sure && borne_on => Some(Confidence::Established),
        Some(Confidence::Suspected) if sure && borne_on => Some(Confidence::Likely),
        other => other,
    }
}

fn next(best: &Judgement, confidence: Option<Confidence>) -> String {
    match (best.owner, confidence) {
        (Owner::Driver, Some(Confidence::Established)) => "send the run's folder to the driver's authors; meanwhile --lock unload shows whether a lock around unloads helps".to_owned(),
        (Owner::CudaTile, Some(Confidence::Established)) => "send the image and the run's folder to NVIDIA/cuda-tile".to_owned(),
        _ => best.next.clone(),
    }
}

fn arm_line(arm: &ArmTally) -> String {
    format!("{}: {} faults in {} {}", arm.name, arm.faults.len(), arm.exposure, arm.yardstick)
}

fn nothing_found(arms: &[ArmTally]) -> Judgement {
    if arms.iter().all(|arm| arm.exposure == 0) {
        return Judgement {
            owner: Owner::Insufficient,
            confidence: None,
            text: "nothing was exercised, so that nothing can be said".to_owned(),
            evidence: arms.iter().map(arm_line).collect(),
            next: "see the warnings below; run longer, or with more threads".to_owned(),
        };
    }
    Judgement {
        owner: Owner::None,
        confidence: None,
        text: "no fault was seen".to_owned(),
        evidence: arms.iter().map(arm_line).collect(),
        next: "a longer run lowers the upper bound of the rate".to_owned(),
    }
}
