//! Whether the statistics keep what they promise, by simulation: abstract children with known hazards, no processes.
//!
//! `cargo run --release --example statistics` prints the table for 10,000 experiments a cell; a test runs a shorter one.

use super::{Block, ExposedLife, Level, Life, RateRatio, SequentialTest, Tally};
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
        write!(f, "{:<76} {word:<16} {:.3}  found {:.4}  {kept}", self.cell, self.promised, self.found)
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

/// One row: runs the experiments on all cores and counts those that hit. Each has a seed of its own, from the cell's name and
/// its number, so that cells are independent and a table can be made again.
fn row(
    promise: Promise,
    cell: String,
    promised: f64,
    experiments: usize,
    experiment: impl Fn(&mut SplitMix) -> bool + Sync,
) -> Row {
    let seed = cell.bytes().fold(0, |seed: u64, byte| SplitMix::new(seed ^ u64::from(byte)).next());
    let of = |number: u64| SplitMix::new(SplitMix::new(seed ^ number).next());
    let hits = (0..experiments as u64).into_par_iter().filter(|&number| experiment(&mut of(number))).count();
    Row::new(promise, cell, promised, hits, experiments)
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
    let one = |(n, p): (u64, f64), level: Level| {
        let cell = format!("share: {n} launches of probability {p:e}");
        row(Promise::Covers, cell, level.confidence(), experiments, |random| {
            let interval = proportion(binomial_draw(n, p, random), n, level);
            interval.low <= p && p <= interval.high
        })
    };
    cells.into_iter().flat_map(|cell| LEVELS.map(|level| one(cell, level()))).collect()
}

const LEVELS: [fn() -> Level; 2] = [|| Level::USUAL, || Level::new(0.99).unwrap_or(Level::USUAL)];

/// Rates and times to the first fault where children end by their faults, so that exposure is not fixed.
fn rates_of_children(experiments: usize) -> Vec<Row> {
    let cells = [3usize, 20, 100].into_iter().flat_map(|n| [0.03, 0.5, 4.0].map(|faults| (n, faults)));
    cells.flat_map(|(children, faults)| children_rows(experiments, children, faults)).collect()
}

fn children_rows(experiments: usize, children: usize, faults_a_life: f64) -> [Row; 2] {
    let hazard = Hazard { scale: 1.0, shape: 1.0 };
    let lives = |random: &mut SplitMix| -> Vec<Life> {
        let life = |_| hazard.life(faults_a_life, random);
        (0..children).map(life).map(|(seconds, faulted)| Life { seconds, faulted }).collect()
    };
    let name = format!("{children} children, {faults_a_life} faults expected a life");
    let rate = row(Promise::Covers, format!("per million launches: {name}"), 0.95, experiments, |random| {
        let lives = lives(random);
        let launches: f64 = lives.iter().map(|life| (life.seconds * 1e5).ceil()).sum();
        let faults = lives.iter().filter(|life| life.faulted).count() as u64;
        let rate = per_million(faults, launches as u64, Level::USUAL);
        rate.low <= 10.0 && 10.0 <= rate.high
    });
    let time = row(Promise::Covers, format!("seconds to first fault: {name}"), 0.95, experiments, |random| {
        let median = seconds_to_first_fault(&lives(random), Level::USUAL);
        let truth = std::f64::consts::LN_2;
        median.low <= truth && median.high.is_none_or(|high| truth <= high)
    });
    [rate, time]
}

/// The ratio of two rates from two tallies, the children of each arm ending by their faults.
fn ratios(experiments: usize) -> Vec<Row> {
    const BLOCKS: u32 = 20;
    let arm = |rate: f64, planned: f64, random: &mut SplitMix| {
        let hazard = Hazard { scale: 1.0 / rate, shape: 1.0 };
        (0..BLOCKS).map(|_| hazard.life(planned, random)).fold(Tally { faults: 0, exposure: 0 }, |t, (e, f)| Tally {
            faults: t.faults + u64::from(f),
            exposure: t.exposure + (e * 1e5) as u64 + 1,
        })
    };
    let cells = [(1.0, 0.05, 1.0), (1.0, 1.0, 3.0), (1.0, 5.0, 1.0), (4.0, 0.3, 1.0), (4.0, 2.0, 0.5)];
    let one = |(ratio, faults, speed): (f64, f64, f64)| {
        let cell = format!("ratio {ratio}, once: {BLOCKS} blocks, {faults} faults a life, speeds 1:{speed}");
        row(Promise::Covers, cell, 0.95, experiments, |random| {
            let (first, second) = (arm(ratio, faults, random), arm(1.0, faults * speed, random));
            compare(first, second, Level::USUAL).is_none_or(|c| covers(c.rate_ratio, ratio))
        })
    };
    cells.into_iter().map(one).collect()
}

fn covers(found: RateRatio, truth: f64) -> bool {
    found.low <= truth && found.high.is_none_or(|high| truth <= high)
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

/// How often equal arms are ever called different, looked at after each block: 300 blocks at 95 %, and 15 blocks (a minute of
/// lives of 2 s) at 99 %.
fn sequential_errors(experiments: usize) -> Vec<Row> {
    // A life of 1 without a fault, with one in ten lives, one in one, ten in one.
    let scales = [f64::INFINITY, 10.0, 1.0, 0.1];
    let shapes = [(1.0, 1.0), (1.0, 3.0), (2.5, 1.0), (2.5, 0.4), (0.5, 2.0)];
    let lengths = [(300, LEVELS[0]()), (15, LEVELS[1]())];
    let cells = scales.into_iter().flat_map(|scale| shapes.map(|(shape, speed)| (scale, shape, speed)));
    let one = |scale: f64, shape: f64, speed: f64, blocks: u32, level: Level| {
        let same = Hazard { scale, shape };
        let duel = Duel { first: same, second: same, speed };
        let faults = 1.0 / scale;
        let cell = format!("equal arms: {blocks} blocks, {faults} faults a life, shape {shape}, speeds 1:{speed}");
        row(Promise::Errs, cell, level.alpha(), experiments, |random| {
            let mut test = SequentialTest::new(level, 1);
            (0..blocks).any(|_| {
                test.add(duel.block(random));
                test.p_value() <= level.alpha()
            })
        })
    };
    cells.flat_map(|(scale, shape, speed)| lengths.map(|(n, level)| one(scale, shape, speed, n, level))).collect()
}

/// Whether the interval of the ratio covers at all of many looks.
fn sequential_intervals(experiments: usize) -> Vec<Row> {
    let one = |(ratio, scale, shape): (f64, f64, f64)| {
        // Weibull hazards of one shape are proportional: the ratio of hazards is that of the scales to the power -shape.
        let first = Hazard { scale, shape };
        let second = Hazard { scale: scale * f64::powf(ratio, 1.0 / shape), shape };
        let duel = Duel { first, second, speed: 1.5 };
        let cell = format!("ratio {ratio}, at all of 20 looks in 200 blocks: shape {shape}");
        row(Promise::Covers, cell, 0.95, experiments, |random| {
            let mut test = SequentialTest::new(Level::USUAL, 1);
            (0..200).all(|look| {
                test.add(duel.block(random));
                look % 10 != 9 || covers(test.rate_ratio(), ratio)
            })
        })
    };
    [(1.0, 0.5, 1.0), (3.0, 1.0, 1.0), (3.0, 1.0, 2.5), (20.0, 0.3, 1.0)].into_iter().map(one).collect()
}

/// Whether the printed need for 90 % power is enough, for a share that is known.
fn power(experiments: usize) -> Vec<Row> {
    let one = |(first, second): (u64, u64)| {
        let mut seen = SequentialTest::new(Level::USUAL, 1);
        (0..first).for_each(|_| seen.add(Block::First));
        (0..second).for_each(|_| seen.add(Block::Second));
        let needed = seen.decided_blocks_needed(0.9)?;
        let share = first as f64 / (first + second) as f64;
        let cell = format!("{needed} more decided blocks: {first} to {second} so far and from now on");
        Some(row(Promise::Power, cell, 0.9, experiments, |random| {
            let mut test = seen;
            (0..needed).any(|_| {
                test.add(if uniform(random) <= share { Block::First } else { Block::Second });
                test.p_value() <= Level::USUAL.alpha()
            })
        }))
    };
    [(1, 0), (4, 1), (3, 1), (2, 1)].into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_is_kept() {
        let rows = table(200);
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
        let narrow = row(Promise::Covers, "narrow".into(), 0.95, 2000, |random| {
            let interval = proportion(binomial_draw(1000, 0.02, random), 1000, narrow);
            interval.low <= 0.02 && 0.02 <= interval.high
        });
        assert!(!narrow.holds());
    }
}
