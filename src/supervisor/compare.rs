//! The first arm against each other one, block by block: the same for a run under way and for its records.

use super::outline::Outline;
use crate::plan::RunPlan;
use crate::stats::{Answer, Block, ExposedLife, Level, SequentialTest};
use std::collections::BTreeMap;

/// The first arm against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the other arm.
    pub other: usize,
    /// What the blocks so far say.
    pub test: SequentialTest,
}

/// Tests all pairs over the trials so far. Empty where there is one arm. Contaminated trials do not count.
pub fn pairs(plan: &RunPlan, trials: &[Outline]) -> Vec<Pair> {
    let others = 1..plan.arms.len();
    others.clone().map(|other| Pair { other, test: test(plan, trials, other, others.len()) }).collect()
}

fn test(plan: &RunPlan, trials: &[Outline], other: usize, pairs: usize) -> SequentialTest {
    let level = Level::new(plan.confidence).unwrap_or(Level::USUAL);
    let mut test = SequentialTest::new(level, pairs);
    let sound = |arm: usize| trials.iter().filter(move |t| t.arm as usize == arm && !t.contaminated);
    let seconds: BTreeMap<u64, &Outline> = sound(other).map(|t| (t.block, t)).collect();
    for first in sound(0) {
        if let Some(second) = seconds.get(&first.block) {
            test.add(Block::of(life(first), life(second)));
        }
    }
    test
}

fn life(trial: &Outline) -> ExposedLife {
    ExposedLife { exposure: trial.launches_to_fault, faulted: trial.faults > 0 }
}

/// Whether every pair has its answer.
pub fn all_answered(pairs: &[Pair]) -> bool {
    !pairs.is_empty() && pairs.iter().all(|pair| pair.test.answer() != Answer::NotYet)
}
