//! Two arms compared while the run goes on: a test that may be looked at after every block and stopped at any time.
//!
//! A block is one child of each arm. Which of the two had its fault after less exposure? If that is known (the other was still
//! alive then), the block is decided. Where both arms have the same hazard as a function of exposure, whatever its shape, each
//! decided block is a fair coin: times to a fault are then alike, and censoring by the planned length or by the other arm's
//! speed does not depend on them. Where the hazards are in the ratio r, the coin shows the first arm with r / (1 + r).
//!
//! The coin is tested by a mixture: the likelihood averaged over Jeffreys' prior Beta(1/2, 1/2), over that of a fair coin, is a
//! martingale under fairness and exceeds 1/alpha at any time with probability alpha at most. H. Robbins, "Statistical methods
//! related to the law of the iterated logarithm", Ann. Math. Stat. 41 (1970); J. Ville (1939); A. Ramdas, P. Gruenwald, V. Vovk,
//! G. Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38 (2023). The values of r that
//! the same martingale does not reject are a confidence sequence: an interval that holds at all times together.

use super::compare::RateRatio;
use super::rates::Level;
use super::tails::last_where;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Name of the test, as it stands in a summary.
pub const TEST: &str =
    "sequential sign test of blocks by exposure to the first fault (mixture martingale, Jeffreys prior)";
/// Arms whose ratio is surely within this factor, in both directions, count as alike.
pub const ALIKE_WITHIN: f64 = 3.0;
/// Decided blocks beyond which the search for a run's needed length is given up.
const FARTHEST: usize = 4000;

/// One child's life on the yardstick: launches until its fault, or until its end without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExposedLife {
    /// Launches made.
    pub exposure: u64,
    /// Whether it ended by a fault.
    pub faulted: bool,
}

/// What a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// The first arm's fault came after less exposure.
    First,
    /// The second arm's did.
    Second,
    /// No fault, or none within the exposure of the other child, or both at the same.
    Undecided,
}

impl Block {
    /// Judges a block by its two children.
    pub fn of(first: ExposedLife, second: ExposedLife) -> Block {
        match first.exposure.cmp(&second.exposure) {
            Ordering::Less if first.faulted => Block::First,
            Ordering::Greater if second.faulted => Block::Second,
            // The longer life without a fault in the shorter one; at equal length only one of both may have ended by a fault.
            Ordering::Equal if first.faulted && !second.faulted => Block::First,
            Ordering::Equal if second.faulted && !first.faulted => Block::Second,
            _ => Block::Undecided,
        }
    }
}

/// What the blocks so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The rates differ.
    Different,
    /// The rates are within a factor of [`ALIKE_WITHIN`].
    Alike,
    /// Neither is sure.
    NotYet,
}

/// The test of one pair of arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequentialTest {
    alpha: f64,
    blocks: u64,
    first: u64,
    second: u64,
    largest_ln_evidence: f64,
}

impl SequentialTest {
    /// An empty test that errs with probability 1 - confidence at most, over `pairs` pairs of arms that are tested together
    /// (Bonferroni's division).
    pub fn new(level: Level, pairs: usize) -> SequentialTest {
        let alpha = level.alpha() / pairs.max(1) as f64;
        SequentialTest { alpha, blocks: 0, first: 0, second: 0, largest_ln_evidence: 0.0 }
    }

    /// Adds a block.
    pub fn add(&mut self, block: Block) {
        self.blocks += 1;
        match block {
            Block::First => self.first += 1,
            Block::Second => self.second += 1,
            Block::Undecided => return,
        }
        self.largest_ln_evidence = self.largest_ln_evidence.max(ln_evidence(self.first, self.second, 0.5));
    }

    /// Blocks so far.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Blocks in which the first and in which the second arm fared worse.
    pub fn decided(&self) -> (u64, u64) {
        (self.first, self.second)
    }

    /// Valid at any time, for one pair.
    pub fn p_value(&self) -> f64 {
        (-self.largest_ln_evidence).exp().min(1.0)
    }

    /// Rate of the first arm over that of the second, valid at all times together.
    pub fn rate_ratio(&self) -> RateRatio {
        let (k, n) = (self.first, self.first + self.second);
        if n == 0 {
            return RateRatio::UNKNOWN;
        }
        let best = k as f64 / n as f64;
        let bound = -self.alpha.ln();
        let refuted = |p: f64| ln_evidence(self.first, self.second, p) >= bound;
        let low = if k == 0 { 0.0 } else { last_where(0.0, best, refuted) };
        let high = if k == n { 1.0 } else { last_where(best, 1.0, |p| !refuted(p)).next_up() };
        RateRatio::from_share(low, Some(best), high, 1.0)
    }

    /// What is sure by now.
    pub fn answer(&self) -> Answer {
        if self.p_value() <= self.alpha {
            return Answer::Different;
        }
        let ratio = self.rate_ratio();
        let alike = ratio.low >= 1.0 / ALIKE_WITHIN && ratio.high.is_some_and(|high| high <= ALIKE_WITHIN);
        if alike { Answer::Alike } else { Answer::NotYet }
    }

    /// Further decided blocks after which the answer is `different` with this probability, if the share of the first arm stays
    /// what it is. None where nothing was decided yet, or more than some thousands were needed.
    pub fn decided_blocks_needed(&self, power: f64) -> Option<u64> {
        if self.answer() == Answer::Different {
            return Some(0);
        }
        let n = self.first + self.second;
        if n == 0 {
            return None;
        }
        let p = self.first as f64 / n as f64;
        let mut enough = Enough { count: 0, bound: -self.alpha.ln() };
        // alive[k]: probability that the first arm was worse in k of the further blocks and that nothing is sure yet.
        let mut alive = vec![1.0];
        for further in 1..=FARTHEST {
            let mut next = vec![0.0; further + 1];
            for (k, weight) in alive.iter().enumerate() {
                next[k] += weight * (1.0 - p);
                next[k + 1] += weight * p;
            }
            let count = enough.of(n + further as u64);
            for (k, weight) in next.iter_mut().enumerate() {
                let (first, second) = (self.first + k as u64, self.second + (further - k) as u64);
                if first.max(second) >= count {
                    *weight = 0.0;
                }
            }
            alive = next;
            if alive.iter().sum::<f64>() <= 1.0 - power {
                return Some(further as u64);
            }
        }
        None
    }

    /// Further seconds after which the answer is `different` with this probability, at the pace and share seen in `seconds`.
    pub fn seconds_needed(&self, power: f64, seconds: f64) -> Option<f64> {
        let pace = seconds / (self.first + self.second) as f64;
        self.decided_blocks_needed(power).map(|blocks| if blocks == 0 { 0.0 } else { blocks as f64 * pace })
    }
}

/// How many decided blocks must fall to one arm to be sure.
struct Enough {
    count: u64,
    bound: f64,
}

impl Enough {
    /// Of `n`; to be asked for growing `n`.
    fn of(&mut self, n: u64) -> u64 {
        self.count = self.count.max(n.div_ceil(2));
        while self.count <= n && ln_evidence(self.count, n - self.count, 0.5) < self.bound {
            self.count += 1;
        }
        self.count
    }
}

/// Logarithm of the mixture's likelihood over that of a coin that shows the first arm with probability `p`.
fn ln_evidence(first: u64, second: u64, p: f64) -> f64 {
    let (k, m) = (first as f64, second as f64);
    let ln_beta = |a: f64, b: f64| libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let times_ln = |count: f64, x: f64| if count == 0.0 { 0.0 } else { count * x };
    ln_beta(k + 0.5, m + 0.5) - ln_beta(0.5, 0.5) - times_ln(k, p.ln()) - times_ln(m, libm::log1p(-p))
}

#[cfg(test)]
#[path = "sequential_tests.rs"]
mod tests;
