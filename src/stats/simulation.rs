//! Whether the statistics keep what they promise, by simulation: abstract children with known hazards, no processes.
//!
//! `cargo run --release --example statistics` prints the table for 10,000 experiments a cell; a test runs a shorter one.

use super::{Answer, Block, ExposedLife, Level, Life, SequentialTest, Tally};
use super::{compare, per_million, proportion, seconds_to_first_fault};
use crate::random::SplitMix;
use rayon::prelude::*;
use std::fmt;

/// One promise in one cell.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was promised.
    pub promise: Promise,
    /// Under which conditions.
    pub cell: String,
    /// The probability promised.
    pub promised: f64,
    /// The share found.
    pub found: f64,
    /// One standard error of the promised probability in so many experiments.
    pub error: f64,
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// An interval covers the truth with at least this probability.
    Covers,
    /// A test errs with at most this probability.
    Errs,
    /// A test is sure with at least this probability.
    Power,
}

impl Row {
    fn new(promise: Promise, cell: String, promised: f64, hits: usize, experiments: usize) -> Row {
        let n = experiments as f64;
        Row { promise, cell, promised, found: hits as f64 / n, error: (promised * (1.0 - promised) / n).sqrt() }
    }

    /// Whether the promise is kept, to three Monte Carlo errors.
    pub fn holds(&self) -> bool {
        match self.promise {
            Promise::Covers | Promise::Power => self.found >= self.promised - 3.0 * self.error,
            Promise::Errs => self.found <= self.promised + 3.0 * self.error,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.promise {
            Promise::Covers => "covers at least",
            Promise::Errs => "errs at most",
            Promise::Power => "is sure at least",
        };
        let kept = if self.holds() { "kept" } else { "BROKEN" };
        write!(f, "{:<78} {word:<16} {:.4}  found {:.4}  {kept}", self.cell, self.promised, self.found)
    }
}

/// All promises, with this many experiments a cell.
pub fn table(experiments: usize) -> Vec<Row> {
    let mut rows = proportions(experiments);
    rows.extend(rates_of_children(experiments));
    rows.extend(ratios(experiments));
    rows.extend(sequential_errors(experiments));
    rows.extend(sequential_intervals(experiments));
    rows.extend(power(experiments));
    rows
}

/// A number above 0 and at most 1.
fn uniform(random: &mut SplitMix) -> f64 {
    ((random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// How the hazard of one arm goes with exposure: Weibull, constant where `shape` is 1.
#[derive(Clone, Copy, Debug)]
struct Hazard {
    /// Mean exposure to a fault; infinite: never.
    scale: f64,
    shape: f64,
}

impl Hazard {
    fn draw(self, random: &mut SplitMix) -> f64 {
        self.scale * (-uniform(random).ln()).powf(1.0 / self.shape)
    }

    /// The life of a child that is stopped at `planned`.
    fn life(self, planned: f64, random: &mut SplitMix) -> (f64, bool) {
        let fault = self.draw(random);
        if fault < planned { (fault, true) } else { (planned, false) }
    }
}

fn exposed((exposure, faulted): (f64, bool)) -> ExposedLife {
    ExposedLife { exposure: (exposure * 1e4) as u64, faulted }
}

/// Runs the experiments on all cores, each with its own seed, and counts those that hit.
fn count(experiments: usize, seed: u64, experiment: impl Fn(&mut SplitMix) -> bool + Sync) -> usize {
    let seeds = (0..experiments as u64).into_par_iter();
    seeds.filter(|i| experiment(&mut SplitMix::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(i << 20)))).count()
}

/// How many of `n` happen, each with probability `p`: by the gaps between those that do.
fn binomial_draw(n: u64, p: f64, random: &mut SplitMix) -> u64 {
    let (mut at, mut k) = (0.0, 0);
    loop {
        at += (uniform(random).ln() / libm::log1p(-p)).floor() + 1.0;
        if at > n as f64 {
            return k;
        }
        k += 1;
    }
}

/// Clopper and Pearson's interval where launches are fixed.
fn proportions(experiments: usize) -> Vec<Row> {
    let cells = [(1_000_000_000, 5e-10), (1_000_000, 3e-6), (100_000, 2e-4), (50, 0.02), (30, 0.4)];
    let row = |(n, p): (u64, f64), level: Level| {
        let hits = count(experiments, n, |random| {
            let interval = proportion(binomial_draw(n, p, random), n, level);
            interval.low <= p && p <= interval.high
        });
        let cell = format!("share, {n} launches, probability {p:e}, {} %", level.confidence() * 100.0);
        Row::new(Promise::Covers, cell, level.confidence(), hits, experiments)
    };
    cells.into_iter().flat_map(|cell| LEVELS.map(|level| row(cell, level()))).collect()
}

const LEVELS: [fn() -> Level; 2] = [|| Level::USUAL, || Level::new(0.99).unwrap_or(Level::USUAL)];

/// Rates and times to the first fault where children end by their faults, so that exposure is not fixed.
fn rates_of_children(experiments: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for children in [3usize, 20, 100] {
        for faults_a_life in [0.03, 0.5, 4.0] {
            let hazard = Hazard { scale: 1.0, shape: 1.0 };
            let lives = |random: &mut SplitMix| -> Vec<Life> {
                let life = |_| hazard.life(faults_a_life, random);
                (0..children).map(life).map(|(seconds, faulted)| Life { seconds, faulted }).collect()
            };
            let name = format!("{children} children, {faults_a_life} faults expected a life");
            let hits = count(experiments, children as u64, |random| {
                let lives = lives(random);
                let launches: f64 = lives.iter().map(|life| (life.seconds * 1e5).ceil()).sum();
                let faults = lives.iter().filter(|life| life.faulted).count() as u64;
                let rate = per_million(faults, launches as u64, Level::USUAL);
                rate.low <= 10.0 && 10.0 <= rate.high
            });
            rows.push(Row::new(
                Promise::Covers,
                format!("faults per million launches, {name}"),
                0.95,
                hits,
                experiments,
            ));
            let hits = count(experiments, 7 + children as u64, |random| {
                let median = seconds_to_first_fault(&lives(random), Level::USUAL);
                let truth = std::f64::consts::LN_2;
                median.low <= truth && median.high.is_none_or(|high| truth <= high)
            });
            rows.push(Row::new(
                Promise::Covers,
                format!("seconds to the first fault, {name}"),
                0.95,
                hits,
                experiments,
            ));
        }
    }
    rows
}

/// The ratio of two rates from two tallies, the children of each arm ending by their faults.
fn ratios(experiments: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (ratio, faults_a_life, speed) in
        [(1.0, 0.05, 1.0), (1.0, 1.0, 3.0), (1.0, 5.0, 1.0), (4.0, 0.3, 1.0), (4.0, 2.0, 0.5)]
    {
        let blocks = 20;
        let arm = |rate: f64, planned: f64, random: &mut SplitMix| {
            let hazard = Hazard { scale: 1.0 / rate, shape: 1.0 };
            (0..blocks).map(|_| hazard.life(planned, random)).fold(Tally { faults: 0, exposure: 0 }, |t, (e, f)| {
                Tally { faults: t.faults + u64::from(f), exposure: t.exposure + (e * 1e5) as u64 + 1 }
            })
        };
        let hits = count(experiments, 11, |random| {
            let first = arm(ratio, faults_a_life, random);
            let second = arm(1.0, faults_a_life * speed, random);
            let found = compare(first, second, Level::USUAL);
            found.is_none_or(|c| c.rate_ratio.low <= ratio && c.rate_ratio.high.is_none_or(|high| ratio <= high))
        });
        let cell = format!(
            "rate ratio {ratio}, {blocks} blocks, {faults_a_life} faults a life, second arm {speed} times as fast"
        );
        rows.push(Row::new(Promise::Covers, cell, 0.95, hits, experiments));
    }
    rows
}

/// A comparison in blocks: two hazards, the second arm doing `speed` times as much in the same time.
#[derive(Clone, Copy)]
struct Duel {
    first: Hazard,
    second: Hazard,
    speed: f64,
}

impl Duel {
    fn block(&self, random: &mut SplitMix) -> Block {
        Block::of(exposed(self.first.life(1.0, random)), exposed(self.second.life(self.speed, random)))
    }
}

/// How often equal arms are ever called different in 300 blocks, looked at after each.
fn sequential_errors(experiments: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    // A life of 5 s: no fault, one in 20 s, one in 2 s, ten a life.
    for (name, scale) in [("none", f64::INFINITY), ("1/20 s", 4.0), ("1/2 s", 0.4), ("2/s", 0.1)] {
        for (shape, speed) in [(1.0, 1.0), (1.0, 3.0), (2.5, 1.0), (2.5, 0.4), (0.5, 2.0)] {
            let same = Hazard { scale, shape };
            let duel = Duel { first: same, second: same, speed };
            let hits = count(experiments, 17, |random| {
                let mut test = SequentialTest::new(Level::USUAL, 1);
                (0..300).any(|_| {
                    test.add(duel.block(random));
                    test.p_value() <= 0.05
                })
            });
            let cell = format!(
                "equal arms, faults {name} in lives of 5 s, Weibull shape {shape}, second {speed} times as fast"
            );
            rows.push(Row::new(Promise::Errs, cell, 0.05, hits, experiments));
        }
    }
    rows
}

/// Whether the interval of the ratio covers at all of many looks.
fn sequential_intervals(experiments: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (ratio, scale, shape) in [(1.0, 0.5, 1.0), (3.0, 1.0, 1.0), (3.0, 1.0, 2.5), (20.0, 0.3, 1.0)] {
        // Weibull hazards of one shape are proportional: the ratio of hazards is that of the scales to the power -shape.
        let first = Hazard { scale, shape };
        let second = Hazard { scale: scale * f64::powf(ratio, 1.0 / shape), shape };
        let duel = Duel { first, second, speed: 1.5 };
        let hits = count(experiments, 23, |random| {
            let mut test = SequentialTest::new(Level::USUAL, 1);
            (0..200).all(|look| {
                test.add(duel.block(random));
                let found = (look % 10 == 9).then(|| test.rate_ratio());
                found.is_none_or(|r| r.low <= ratio && r.high.is_none_or(|high| ratio <= high))
            })
        });
        let cell = format!("rate ratio {ratio} at all of 20 looks in 200 blocks, Weibull shape {shape}");
        rows.push(Row::new(Promise::Covers, cell, 0.95, hits, experiments));
    }
    rows
}

/// Whether the printed need for 90 % power is enough, for a share that is known.
fn power(experiments: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (first, second) in [(1u64, 0u64), (4, 1), (3, 1), (2, 1)] {
        let mut seen = SequentialTest::new(Level::USUAL, 1);
        (0..first).for_each(|_| seen.add(Block::First));
        (0..second).for_each(|_| seen.add(Block::Second));
        let Some(needed) = seen.decided_blocks_needed(0.9) else { continue };
        let share = first as f64 / (first + second) as f64;
        let hits = count(experiments, 29, |random| {
            let mut test = seen;
            (0..needed).any(|_| {
                test.add(if uniform(random) <= share { Block::First } else { Block::Second });
                test.answer() == Answer::Different
            })
        });
        let cell = format!("{needed} more decided blocks, {first} to {second} so far and from now on");
        rows.push(Row::new(Promise::Power, cell, 0.9, hits, experiments));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_is_kept() {
        let rows = table(400);
        let broken: Vec<String> = rows.iter().filter(|row| !row.holds()).map(Row::to_string).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        assert!(rows.len() > 50);
    }

    #[test]
    fn a_broken_promise_is_seen() {
        assert!(!Row::new(Promise::Covers, String::new(), 0.95, 900, 1000).holds());
        assert!(!Row::new(Promise::Errs, String::new(), 0.05, 100, 1000).holds());
        // An interval that is too narrow for its level is found out by the same machinery.
        let narrow = Level::new(0.8).unwrap();
        let hits = count(2000, 1, |random| {
            let interval = proportion(binomial_draw(1000, 0.02, random), 1000, narrow);
            interval.low <= 0.02 && 0.02 <= interval.high
        });
        assert!(!Row::new(Promise::Covers, String::new(), 0.95, hits, 2000).holds());
    }
}
