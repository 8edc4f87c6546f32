//! The first arm against each other one, block by block: the same for a run under way and for its records.

use crate::plan::RunPlan;
use crate::stats::{Answer, Block, ExposedLife, Level, SequentialTest};
use crate::store::TrialRecord;
use crate::vocabulary::Call;

/// The first arm against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the other arm.
    pub other: usize,
    /// What the blocks so far say.
    pub test: SequentialTest,
}

/// Tests all pairs over the trials so far. Empty where there is one arm. Contaminated trials do not count.
pub fn pairs(plan: &RunPlan, trials: &[TrialRecord]) -> Vec<Pair> {
    let others = 1..plan.arms.len();
    others.clone().map(|other| Pair { other, test: test(plan, trials, other, others.len()) }).collect()
}

fn test(plan: &RunPlan, trials: &[TrialRecord], other: usize, pairs: usize) -> SequentialTest {
    let level = Level::new(plan.confidence).unwrap_or(Level::USUAL);
    let mut test = SequentialTest::new(level, pairs);
    let sound = |arm: usize| trials.iter().filter(move |t| t.arm == arm && !t.contaminated);
    for first in sound(0) {
        if let Some(second) = sound(other).find(|t| t.block == first.block) {
            test.add(Block::of(life(first), life(second)));
        }
    }
    test
}

fn life(trial: &TrialRecord) -> ExposedLife {
    let launches = trial.calls.get(&Call::Launch).map_or(0, |c| c.count);
    ExposedLife { exposure: launches, faulted: !trial.faults.is_empty() }
}

/// Whether every pair has its answer.
pub fn all_answered(pairs: &[Pair]) -> bool {
    !pairs.is_empty() && pairs.iter().all(|pair| pair.test.answer() != Answer::NotYet)
}
