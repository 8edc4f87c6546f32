//! Time to the first fault, from children that had one and children that had none.
//!
//! A child without a fault is not a missing value: it is a time that was survived ("censored").
//!
//! - The number in the summary is the median of hammering without a pause until a fault, lost children being replaced: total
//!   time on test over faults, with the exact interval for a fixed total time. B. Epstein and M. Sobel, "Life testing", JASA 48
//!   (1953); D. R. Cox, "Some simple approximate tests for Poisson variates", Biometrika 40 (1953). It stands on a hazard that
//!   is the same for each child's life; it need not be constant within it as long as a fault in any one child is unlikely.
//! - The curve in the report assumes nothing: E. L. Kaplan and P. Meier, JASA 53 (1958), with M. Greenwood's variance (1926) and
//!   limits on the log(-log) scale, which stay between 0 and 1 (J. D. Kalbfleisch and R. L. Prentice, 1980).

use super::rates::{Level, per_second};
use super::tails::last_where;
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// How long one child lived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// From the start of its loop to its fault, or to its end without one, seconds.
    pub seconds: f64,
    /// Whether it ended by a fault.
    pub faulted: bool,
}

/// A median with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MedianInterval {
    /// The median; none: no fault was seen.
    pub median: Option<f64>,
    /// Lower limit.
    pub low: f64,
    /// Upper limit; none: unbounded.
    pub high: Option<f64>,
}

/// Median seconds of hammering to a fault.
pub fn seconds_to_first_fault(lives: &[Life], level: Level) -> MedianInterval {
    let faults = lives.iter().filter(|life| life.faulted).count() as u64;
    let seconds = lives.iter().map(|life| life.seconds.max(0.0)).sum();
    let rate = per_second(faults, seconds, level);
    MedianInterval {
        median: (faults > 0).then(|| LN_2 / rate.best),
        low: LN_2 / rate.high,
        high: (faults > 0).then(|| LN_2 / rate.low),
    }
}

/// A step of a survival curve: from here on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Seconds of a child's life.
    pub seconds: f64,
    /// Children that lived until here.
    pub at_risk: u64,
    /// Faults here.
    pub faults: u64,
    /// Share of children that are past this point without a fault.
    pub surviving: f64,
    /// Lower limit of that share.
    pub low: f64,
    /// Upper limit of that share.
    pub high: f64,
}

/// Share of children without a fault over their lives (Kaplan and Meier), a step a time at which there were faults.
pub fn survival(lives: &[Life], level: Level) -> Vec<Step> {
    let mut lives: Vec<Life> = lives.iter().copied().filter(|life| life.seconds.is_finite()).collect();
    lives.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let z = normal_quantile(1.0 - level.alpha() / 2.0);
    let (mut surviving, mut greenwood) = (1.0, 0.0);
    let mut steps = Vec::new();
    let mut done = 0;
    for same in lives.chunk_by(|a, b| a.seconds == b.seconds) {
        let at_risk = (lives.len() - done) as f64;
        done += same.len();
        let faults = same.iter().filter(|life| life.faulted).count() as u64;
        if faults == 0 {
            continue;
        }
        let d = faults as f64;
        surviving *= 1.0 - d / at_risk;
        greenwood += d / (at_risk * (at_risk - d));
        let (low, high) = log_log_limits(surviving, greenwood, z);
        steps.push(Step { seconds: same[0].seconds, at_risk: at_risk as u64, faults, surviving, low, high });
    }
    steps
}

/// Limits `S^exp(+-z sqrt(greenwood) / ln S)`; where no one is left they are not defined: all or nothing.
fn log_log_limits(surviving: f64, greenwood: f64, z: f64) -> (f64, f64) {
    if surviving <= 0.0 || !greenwood.is_finite() {
        return (0.0, 1.0);
    }
    let spread = z * greenwood.sqrt() / surviving.ln();
    let limit = |sign: f64| surviving.powf((sign * spread).exp());
    (limit(-1.0).min(limit(1.0)), limit(-1.0).max(limit(1.0)))
}

/// The standard normal deviate that is exceeded with probability `1 - p`, for `p` of a half or more.
fn normal_quantile(p: f64) -> f64 {
    last_where(0.0, 40.0, |z| 0.5 * libm::erfc(z * FRAC_1_SQRT_2) >= 1.0 - p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    /// E. J. Freireich et al., Blood 21 (1963): weeks of remission under 6-MP, as in every textbook of survival analysis.
    fn six_mp() -> Vec<Life> {
        let relapsed = [6, 6, 6, 7, 10, 13, 16, 22, 23].map(|w| (w, true));
        let censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35].map(|w| (w, false));
        relapsed.into_iter().chain(censored).map(|(w, faulted)| Life { seconds: f64::from(w), faulted }).collect()
    }

    #[test]
    fn the_textbook_curve() {
        let steps = survival(&six_mp(), Level::USUAL);
        let published =
            [(6.0, 0.857), (7.0, 0.807), (10.0, 0.753), (13.0, 0.690), (16.0, 0.627), (22.0, 0.538), (23.0, 0.448)];
        assert_eq!(steps.len(), published.len());
        for (step, (weeks, share)) in steps.iter().zip(published) {
            assert_eq!(step.seconds, weeks);
            near(step.surviving, share, 6e-4);
        }
        assert_eq!((steps[0].at_risk, steps[0].faults), (21, 3));
        // Limits on the log(-log) scale, as the survival package of R and lifelines of Python print them.
        near(steps[0].low, 0.620, 1e-3);
        near(steps[0].high, 0.952, 1e-3);
        near(steps[6].low, 0.188, 1e-3);
        near(steps[6].high, 0.680, 1e-3);
    }

    /// NIST/SEMATECH e-Handbook of Statistical Methods, 8.4.5.1: 2 failures in 800 hours, a 90 % interval of 127 to 2251 hours
    /// for the mean time between failures.
    #[test]
    fn the_handbooks_mean_time_between_failures() {
        let lives = [Life { seconds: 300.0, faulted: true }, Life { seconds: 500.0, faulted: true }];
        let median = seconds_to_first_fault(&lives, Level::new(0.90).unwrap());
        near(median.median.unwrap() / LN_2, 400.0, 1e-9);
        near(median.low / LN_2, 127.1, 0.1);
        near(median.high.unwrap() / LN_2, 2251.2, 0.5);
    }

    #[test]
    fn no_fault_leaves_a_lower_bound() {
        let median = seconds_to_first_fault(&[Life { seconds: 60.0, faulted: false }], Level::USUAL);
        assert_eq!((median.median, median.high), (None, None));
        near(median.low, 60.0 * LN_2 / 3.688_879, 1e-4);
        assert_eq!(seconds_to_first_fault(&[], Level::USUAL).low, 0.0);
    }

    #[test]
    fn where_all_have_failed_the_curve_ends_at_nothing() {
        let lives = [1.0, 2.0].map(|seconds| Life { seconds, faulted: true });
        let steps = survival(&lives, Level::USUAL);
        assert_eq!((steps[1].surviving, steps[1].low, steps[1].high), (0.0, 0.0, 1.0));
        assert!(survival(&[Life { seconds: f64::NAN, faulted: true }], Level::USUAL).is_empty());
        near(normal_quantile(0.975), 1.959_964, 1e-6);
    }
}
