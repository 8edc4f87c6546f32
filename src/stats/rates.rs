//! Rates with exact intervals.
//!
//! - Faults among launches (or overlaps): C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
//!   illustrated in the case of the binomial", Biometrika 26 (1934).
//! - Faults in a time: F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936).
//!
//! Children stop at their fault, so launches are not fixed in advance. That only makes these intervals wider than they need to
//! be (the upper limit of inverse sampling is that of one fault fewer). Limits are rounded outwards: a limit never excludes a
//! value that it should not.

use super::tails::{binomial_at_least, binomial_at_most, last_where, poisson_at_least, poisson_at_most};
use serde::{Deserialize, Serialize};

/// Relative error of a tail probability that limits are widened by.
const SLACK: f64 = 1e-11;

/// How sure an interval is: the probability with which it covers the truth, at least.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Level(f64);

/// A confidence that is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("confidence {0} is not between 0.5 and 0.999999")]
pub struct NotALevel(f64);

impl Level {
    /// 95 %.
    pub const USUAL: Level = Level(0.95);

    /// A level between 0.5 and 0.999999.
    ///
    /// # Errors
    /// [`NotALevel`] for anything else.
    pub fn new(confidence: f64) -> Result<Level, NotALevel> {
        if (0.5..=0.999_999).contains(&confidence) { Ok(Level(confidence)) } else { Err(NotALevel(confidence)) }
    }

    /// The probability of covering the truth.
    pub fn confidence(self) -> f64 {
        self.0
    }

    /// The probability of missing it, in all.
    pub fn alpha(self) -> f64 {
        1.0 - self.0
    }
}

impl TryFrom<f64> for Level {
    type Error = NotALevel;
    fn try_from(confidence: f64) -> Result<Level, NotALevel> {
        Level::new(confidence)
    }
}

impl From<Level> for f64 {
    fn from(level: Level) -> f64 {
        level.0
    }
}

/// An estimate with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Best estimate.
    pub best: f64,
    /// Upper limit.
    pub high: f64,
}

impl Interval {
    /// All three times a factor.
    pub fn scaled(self, factor: f64) -> Interval {
        Interval { low: self.low * factor, best: self.best * factor, high: self.high * factor }
    }

    /// For printing: limits at this many significant digits, rounded outwards.
    pub fn outward(self, digits: u32) -> Interval {
        let step = |x: f64| 10f64.powi(x.abs().log10().floor() as i32 + 1 - digits as i32);
        let round =
            |x: f64, how: fn(f64) -> f64| if x == 0.0 || !x.is_finite() { x } else { how(x / step(x)) * step(x) };
        Interval {
            low: round(self.low, f64::floor).min(self.low),
            best: self.best,
            high: round(self.high, f64::ceil).max(self.high),
        }
    }
}

/// The probability of an event that happened `k` times in `n` (Clopper and Pearson). `k` above `n` counts as `n`; with `n` 0
/// nothing is known.
pub fn proportion(k: u64, n: u64, level: Level) -> Interval {
    let k = k.min(n);
    if n == 0 {
        return Interval { low: 0.0, best: 0.0, high: 1.0 };
    }
    let tail = level.alpha() / 2.0 * (1.0 - SLACK);
    let best = k as f64 / n as f64;
    let low = if k == 0 { 0.0 } else { last_where(0.0, best, |p| binomial_at_least(k, n, p) <= tail) };
    let high = if k == n { 1.0 } else { last_where(best, 1.0, |p| binomial_at_most(k, n, p) >= tail).next_up() };
    Interval { low, best, high }
}

/// Faults per million of what was done, `exposure` times in all.
pub fn per_million(faults: u64, exposure: u64, level: Level) -> Interval {
    proportion(faults, exposure, level).scaled(1e6)
}

/// Events a second, of `k` in `seconds` (Garwood). With no time nothing is known: `high` is infinite.
pub fn per_second(k: u64, seconds: f64, level: Level) -> Interval {
    if seconds <= 0.0 {
        return Interval { low: 0.0, best: 0.0, high: f64::INFINITY };
    }
    expected(k, level).scaled(1.0 / seconds)
}

/// The expectation of a Poisson count that came out as `k`.
fn expected(k: u64, level: Level) -> Interval {
    let tail = level.alpha() / 2.0 * (1.0 - SLACK);
    let best = k as f64;
    let low = if k == 0 { 0.0 } else { last_where(0.0, best, |m| poisson_at_least(k, m) <= tail) };
    // Beyond this no tail of a level is left: 15 standard deviations and 30.
    let far = best + 15.0 * best.sqrt() + 30.0;
    Interval { low, best, high: last_where(best, far, |m| poisson_at_most(k, m) >= tail).next_up() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    /// R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I,
    /// method 5.
    #[test]
    fn newcombes_table() {
        for (k, n, low, high) in
            [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)]
        {
            let interval = proportion(k, n, Level::USUAL);
            near(interval.low, low, 5e-5);
            near(interval.high, high, 5e-5);
        }
    }

    /// Garwood's table (1936): 95 % limits of a Poisson expectation.
    #[test]
    fn garwoods_table() {
        for (k, low, high) in [
            (0, 0.0, 3.689),
            (1, 0.0253, 5.572),
            (2, 0.242, 7.225),
            (5, 1.623, 11.668),
            (10, 4.795, 18.390),
            (50, 37.11, 65.92),
        ] {
            let interval = per_second(k, 1.0, Level::USUAL);
            near(interval.low, low, 5e-3);
            near(interval.high, high, 5e-3);
        }
    }

    /// B. D. Jovanovic and P. S. Levy, "A look at the rule of three", American Statistician 51 (1997): no event in n leaves
    /// 1 - (alpha/2)^(1/n).
    #[test]
    fn no_fault_leaves_an_upper_bound() {
        for n in [20u64, 1_000, 10_000_000, 1_000_000_000_000] {
            let exact = -(0.025f64.ln() / n as f64).exp_m1();
            let high = per_million(0, n, Level::USUAL).high / 1e6;
            assert!(high >= exact && high < exact * (1.0 + 1e-9), "{high} against {exact}");
        }
        assert_eq!(proportion(0, 0, Level::USUAL), Interval { low: 0.0, best: 0.0, high: 1.0 });
        assert_eq!(per_second(0, 0.0, Level::USUAL).high, f64::INFINITY);
    }

    #[test]
    fn a_thousand_faults_in_a_billion_launches() {
        let interval = per_million(1000, 1_000_000_000, Level::USUAL);
        near(interval.low, 0.938_973, 1e-5);
        near(interval.high, 1.063_952, 1e-5);
        assert_eq!(proportion(9, 7, Level::USUAL).high, 1.0, "more faults than launches");
    }

    #[test]
    fn printed_limits_are_wider() {
        let shown = Interval { low: 0.123_45, best: 0.2, high: 98.721 }.outward(3);
        assert!(shown.low <= 0.123_45 && shown.high >= 98.721);
        near(shown.low, 0.123, 1e-12);
        near(shown.high, 98.8, 1e-9);
        assert_eq!(Interval { low: 0.0, best: 0.0, high: f64::INFINITY }.outward(3).low, 0.0);
    }

    #[test]
    fn a_level_is_a_probability() {
        assert!(
            Level::new(0.99).is_ok()
                && Level::new(1.0).is_err()
                && Level::new(f64::NAN).is_err()
                && Level::new(99.0).is_err()
        );
        assert!(serde_json::from_str::<Level>("0.1").is_err());
    }

    proptest! {
        #[test]
        fn limits_are_where_the_tails_are(k in 0u64..60, more in 0u64..2_000_000_000, confidence in 0.6f64..0.9999) {
            let (n, level) = (k + more, Level::new(confidence).unwrap());
            let interval = proportion(k, n, level);
            prop_assert!(0.0 <= interval.low && interval.low <= interval.best && interval.best <= interval.high && interval.high <= 1.0);
            let tail = level.alpha() / 2.0;
            prop_assert!(k == 0 || binomial_at_least(k, n, interval.low) <= tail);
            prop_assert!(k == n || binomial_at_most(k, n, interval.high) <= tail);
            prop_assert!(k == 0 || binomial_at_least(k, n, interval.low * (1.0 + 1e-9)) > tail);
            let wider = proportion(k, n, Level::new(confidence + 0.00005).unwrap());
            prop_assert!(wider.low <= interval.low && wider.high >= interval.high);
        }
    }
}
