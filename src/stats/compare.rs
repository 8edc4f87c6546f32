//! Two arms, compared once, after the fact: how many times the rate of the first is that of the second.
//!
//! Given the faults of both arms together, those of the first are binomial with p = r E1 / (r E1 + E2), where E1 and E2 are the
//! exposures and r the ratio of the rates: J. Przyborowski and H. Wilenski, "Homogeneity of results in testing samples from
//! Poisson series", Biometrika 31 (1940). So equal rates are p0 = E1 / (E1 + E2), and the interval of Clopper and Pearson for p
//! becomes one for r. Not for looking again and again: that is `sequential.rs`.

use super::rates::{Level, proportion};
use super::tails::{binomial_at_least, binomial_at_most};
use serde::{Deserialize, Serialize};

/// One arm's faults and exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Faults.
    pub faults: u64,
    /// Launches or overlaps.
    pub exposure: u64,
}

/// A ratio of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RateRatio {
    /// Lower limit.
    pub low: f64,
    /// Best estimate; none: the second arm had no fault.
    pub best: Option<f64>,
    /// Upper limit; none: unbounded.
    pub high: Option<f64>,
}

impl RateRatio {
    /// Nothing is known.
    pub const UNKNOWN: RateRatio = RateRatio { low: 0.0, best: None, high: None };

    /// From limits of the share of the first arm, where equal rates give it `odds` to one.
    pub(super) fn from_share(low: f64, best: Option<f64>, high: f64, odds: f64) -> RateRatio {
        let ratio = |p: f64| p / (1.0 - p) / odds;
        let finite = |p: f64| Some(ratio(p)).filter(|r| r.is_finite());
        RateRatio { low: ratio(low), best: best.and_then(finite), high: finite(high) }
    }
}

/// Two arms compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixedComparison {
    /// Rate of the first over that of the second.
    pub rate_ratio: RateRatio,
    /// Two-sided: twice the smaller tail. Below 1 - confidence exactly where the interval leaves out 1.
    pub p_value: f64,
}

/// Compares two arms; none where there is no fault, or an arm without exposure.
pub fn compare(first: Tally, second: Tally, level: Level) -> Option<FixedComparison> {
    let n = first.faults.checked_add(second.faults)?;
    if n == 0 || first.exposure == 0 || second.exposure == 0 {
        return None;
    }
    let odds = first.exposure as f64 / second.exposure as f64;
    let equal = odds / (1.0 + odds);
    let smaller = binomial_at_least(first.faults, n, equal).min(binomial_at_most(first.faults, n, equal));
    let share = proportion(first.faults, n, level);
    Some(FixedComparison {
        rate_ratio: RateRatio::from_share(share.low, Some(share.best), share.high, odds),
        p_value: (2.0 * smaller).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally(faults: u64, exposure: u64) -> Tally {
        Tally { faults, exposure }
    }

    /// The example of R's `poisson.test` (breast cancer data of Rothman and Greenland): 11 in 800 against 21 in 3011, ratio
    /// 1.971488 with the 95 % interval 0.8584264 to 4.2772659.
    #[test]
    fn the_example_of_r() {
        let ratio = compare(tally(11, 800), tally(21, 3011), Level::USUAL).unwrap().rate_ratio;
        assert!((ratio.best.unwrap() - 1.971_488).abs() < 1e-6);
        assert!((ratio.low - 0.858_426_4).abs() < 1e-6, "{ratio:?}");
        assert!((ratio.high.unwrap() - 4.277_265_9).abs() < 1e-6, "{ratio:?}");
    }

    #[test]
    fn five_to_nothing_at_equal_exposure() {
        let result = compare(tally(5, 1_000_000), tally(0, 1_000_000), Level::USUAL).unwrap();
        assert!((result.p_value - 2.0 / 32.0).abs() < 1e-12);
        assert_eq!((result.rate_ratio.best, result.rate_ratio.high), (None, None));
        assert!(result.rate_ratio.low > 0.0 && result.rate_ratio.low < 1.0);
        let turned = compare(tally(0, 1_000_000), tally(5, 1_000_000), Level::USUAL).unwrap();
        assert_eq!((turned.rate_ratio.low, turned.rate_ratio.best), (0.0, Some(0.0)));
    }

    #[test]
    fn nothing_to_compare() {
        assert_eq!(compare(tally(0, 5), tally(0, 5), Level::USUAL), None);
        assert_eq!(compare(tally(3, 5), tally(0, 0), Level::USUAL), None);
    }

    proptest! {
        #[test]
        fn the_interval_and_the_p_value_agree(a in 0u64..40, b in 0u64..40, ea in 1u64..1_000_000, eb in 1u64..1_000_000) {
            prop_assume!(a + b > 0);
            let result = compare(tally(a, ea), tally(b, eb), Level::USUAL).unwrap();
            let excludes = result.rate_ratio.low > 1.0 || result.rate_ratio.high.is_some_and(|high| high < 1.0);
            prop_assert_eq!(excludes, result.p_value < 0.05, "{:?}", result);
        }
    }
}
