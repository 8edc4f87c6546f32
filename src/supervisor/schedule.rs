//! Which arm runs next, for how long, with which seed.
//!
//! Arms run in blocks of one child each, of equal planned length, in an order drawn anew for each block. All children of a
//! block share one seed. A child that died early is replaced where there is only one arm; where arms are compared each has
//! one child a block, so that the arms see the same ages.

use crate::plan::RunPlan;
use crate::random::SplitMix;

/// Shortest life that is worth starting, seconds.
const SHORTEST: f64 = 0.05;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next {
    /// The child's number in the run, from 0.
    pub number: u64,
    /// Index of its arm.
    pub arm: usize,
    /// Its block, from 0.
    pub block: u64,
    /// Its seed.
    pub seed: u64,
    /// How long it is to run, seconds.
    pub seconds: f64,
}

/// The order of children.
#[derive(Debug)]
pub struct Schedule {
    arms: usize,
    total: f64,
    life: f64,
    random: SplitMix,
    number: u64,
    block: u64,
    block_seed: u64,
    /// Arms of the current block still to come, last first.
    waiting: Vec<usize>,
}

impl Schedule {
    /// The schedule of a plan.
    pub fn new(plan: &RunPlan) -> Schedule {
        let arms = plan.arms.len();
        let life = plan.life.min(plan.seconds / arms.max(1) as f64);
        let random = SplitMix::new(plan.seed);
        Schedule { arms, total: plan.seconds, life, random, number: 0, block: 0, block_seed: 0, waiting: vec![] }
    }

    /// The next child, `elapsed` seconds into the run; none: the time is over.
    pub fn next(&mut self, elapsed: f64) -> Option<Next> {
        let left = self.total - elapsed;
        if self.waiting.is_empty() {
            // A block that cannot be finished is not begun: its arms would differ in exposure.
            let needed = if self.arms > 1 { self.life * self.arms as f64 * 0.9 } else { SHORTEST };
            if left < needed && self.number > 0 {
                return None;
            }
            self.begin_block();
        }
        let arm = self.waiting.pop()?;
        let seconds = if self.arms > 1 { self.life } else { self.life.min(left.max(SHORTEST)) };
        let number = self.number;
        self.number += 1;
        Some(Next { number, arm, block: self.block - 1, seed: self.block_seed, seconds })
    }

    /// Whether the last block is whole.
    pub fn between_blocks(&self) -> bool {
        self.waiting.is_empty()
    }

    fn begin_block(&mut self) {
        self.waiting = (0..self.arms).collect();
        self.random.shuffle(&mut self.waiting);
        self.block_seed = self.random.next();
        self.block += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arm, Workload};

    fn plan(arms: usize, seconds: f64, life: f64) -> RunPlan {
        let arm = |i: usize| Arm { name: i.to_string(), image: "x".into(), workload: Workload::default() };
        RunPlan { arms: (0..arms).map(arm).collect(), seconds, life, seed: 7, ..RunPlan::default() }
    }

    #[test]
    fn one_arm_has_one_child_until_the_end_and_a_dead_one_is_replaced_for_what_is_left() {
        let mut schedule = Schedule::new(&plan(1, 20.0, 60.0));
        assert_eq!(schedule.next(0.0).unwrap().seconds, 20.0);
        let second = schedule.next(5.0).unwrap();
        assert_eq!((second.number, second.seconds), (1, 15.0));
        assert_eq!(schedule.next(19.99), None);
    }

    #[test]
    fn compared_arms_run_in_blocks_of_equal_length_and_seed_in_changing_order() {
        let mut schedule = Schedule::new(&plan(2, 100.0, 2.0));
        let mut orders = std::collections::BTreeSet::new();
        for block in 0..20 {
            let pair = [schedule.next(block as f64 * 4.0).unwrap(), schedule.next(block as f64 * 4.0 + 2.0).unwrap()];
            assert_eq!((pair[0].seconds, pair[1].seconds), (2.0, 2.0));
            assert_eq!(pair[0].seed, pair[1].seed);
            assert_eq!((pair[0].block, pair[1].block), (block, block));
            assert_ne!(pair[0].arm, pair[1].arm);
            orders.insert(pair[0].arm);
        }
        assert_eq!(orders.len(), 2);
        assert_eq!(schedule.next(98.0), None, "a block that cannot be finished is not begun");
    }

    #[test]
    fn a_seed_replays_the_schedule() {
        let run = |_| {
            let mut schedule = Schedule::new(&plan(3, 30.0, 1.0));
            (0..9).map(|i| schedule.next(f64::from(i)).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(run(0), run(1));
    }
}
