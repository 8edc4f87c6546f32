//! Tail probabilities of binomial and Poisson counts, through the incomplete beta and gamma functions.
//!
//! The beta function's continued fraction is that of A. R. DiDonato and A. H. Morris, ACM Trans. Math. Softw. 18 (1992), algorithm
//! 708: it is written in the difference from the mean and so keeps its digits where probabilities are as small as 10^-12. The gamma
//! function: NIST Digital Library of Mathematical Functions, 8.11.4 and 8.9.2. Factors before them: Loader (`deviance.rs`).

use super::deviance::{binomial_probability, poisson_probability};

/// Steps after which a fraction is given up. It needs some multiple of the square root of the counts.
const MOST_STEPS: u32 = 1_000_000;

/// Regularised incomplete beta function `I_x(a, b)` for `a` and `b` above 1; `y` is `1 - x`.
pub(super) fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    // How far x lies below the mean, from the smaller of x and y: the other has lost the digits that matter.
    let below = if x <= y { a - (a + b) * x } else { (a + b) * y - b };
    if below >= 0.0 { beta_fraction(a, b, x, y, below) } else { 1.0 - beta_fraction(b, a, y, x, -below) }
}

/// Algorithm 708's BFRAC: `I_x(a, b)` where x lies `below` / (a + b) below the mean.
fn beta_fraction(a: f64, b: f64, x: f64, y: f64, below: f64) -> f64 {
    let front = binomial_probability(a, a + b, x, y) * a * b / (a + b);
    let (c, c0, c1) = (1.0 + below, b / a, 1.0 + 1.0 / a);
    let (mut p, mut s) = (1.0, a + 1.0);
    let (mut num, mut den, mut next_num, mut next_den) = (0.0, 1.0, 1.0, c / c1);
    let mut ratio = c1 / c;
    for step in 1..MOST_STEPS {
        let n = f64::from(step);
        let t = n / a;
        let w = n * (b - n) * x;
        let alpha = p * (p + c0) * (a / s) * (a / s) * (w * x);
        let beta = n + w / s + (t + 1.0) / (c1 + t + t) * (c + n * (y + 1.0));
        p = 1.0 + t;
        s += 2.0;
        (num, next_num) = (next_num, alpha * num + beta * next_num);
        (den, next_den) = (next_den, alpha * den + beta * next_den);
        let before = ratio;
        ratio = next_num / next_den;
        if (ratio - before).abs() <= 1e-15 * ratio {
            break;
        }
        (num, den, next_num, next_den) = (num / next_den, den / next_den, ratio, 1.0);
    }
    front * ratio
}

/// Probability of at least `k` of `n` where each has probability `p`.
pub(super) fn binomial_at_least(k: u64, n: u64, p: f64) -> f64 {
    match k {
        0 => 1.0,
        1 => -libm::expm1(n as f64 * libm::log1p(-p)),
        _ if k == n => p.powf(n as f64),
        _ => incomplete_beta(k as f64, (n - k) as f64 + 1.0, p, 1.0 - p),
    }
}

/// Probability of at most `k` of `n` where each has probability `p`.
pub(super) fn binomial_at_most(k: u64, n: u64, p: f64) -> f64 {
    match k {
        _ if k >= n => 1.0,
        0 => (n as f64 * libm::log1p(-p)).exp(),
        _ if k + 1 == n => 1.0 - p.powf(n as f64),
        _ => incomplete_beta((n - k) as f64, k as f64 + 1.0, 1.0 - p, p),
    }
}

/// Probability of at least `k` where `mean` are expected.
pub(super) fn poisson_at_least(k: u64, mean: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    let a = k as f64;
    if mean < a + 1.0 { gamma_series(a, mean) } else { 1.0 - gamma_fraction(a, mean) }
}

/// Probability of at most `k` where `mean` are expected.
pub(super) fn poisson_at_most(k: u64, mean: f64) -> f64 {
    let a = k as f64 + 1.0;
    if mean < a + 1.0 { 1.0 - gamma_series(a, mean) } else { gamma_fraction(a, mean) }
}

/// Regularised lower incomplete gamma function `P(a, x)` by its series (DLMF 8.11.4).
fn gamma_series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for step in 1..MOST_STEPS {
        term *= x / (a + f64::from(step));
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    poisson_probability(a, x) * sum
}

/// Regularised upper incomplete gamma function `Q(a, x)` by its continued fraction, evaluated by Lentz's method.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    let nonzero = |x: f64| if x.abs() < 1e-300 { 1e-300 } else { x };
    let mut value = nonzero(x + 1.0 - a);
    let (mut c, mut d) = (value, 0.0);
    for step in 1..MOST_STEPS {
        let i = f64::from(step);
        let (up, down) = (-i * (i - a), x + 2.0 * i + 1.0 - a);
        d = 1.0 / nonzero(down + up * d);
        c = nonzero(down + up / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    // x^a e^-x / Gamma(a), as a Poisson probability.
    poisson_probability(a, x) * a / value
}

/// The largest `x` in `low..high` for which `keep` holds, to the last bit. `keep` must turn from true to false once.
/// Gives `low` where it never holds.
pub(super) fn last_where(low: f64, high: f64, keep: impl Fn(f64) -> bool) -> f64 {
    // Floats of one sign are ordered like their bits: halving those takes at most 64 steps, however small the answer is.
    let (mut yes, mut no) = (low.max(0.0).to_bits(), high.to_bits());
    while no > yes + 1 {
        let middle = yes + (no - yes) / 2;
        if keep(f64::from_bits(middle)) { yes = middle } else { no = middle }
    }
    f64::from_bits(yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, relative: f64) {
        assert!((a / b - 1.0).abs() < relative, "{a} is not {b}");
    }

    #[test]
    fn small_tails_are_sums() {
        for k in 0..=20u64 {
            for p in [0.001, 0.1, 0.5, 0.93] {
                let at_least: f64 = (k..=20).map(|i| binomial_probability(i as f64, 20.0, p, 1.0 - p)).sum();
                close(binomial_at_least(k, 20, p), at_least, 1e-11);
                let at_most: f64 = (0..=k).map(|i| binomial_probability(i as f64, 20.0, p, 1.0 - p)).sum();
                close(binomial_at_most(k, 20, p), at_most, 1e-11);
            }
            for mean in [0.01, 1.0, 7.5, 40.0] {
                let at_most: f64 = (0..=k).map(|i| poisson_probability(i as f64, mean)).sum();
                close(poisson_at_most(k, mean), at_most, 1e-11);
                close(poisson_at_least(k + 1, mean) + at_most, 1.0, 1e-12);
            }
        }
    }

    #[test]
    fn rare_events_among_a_billion_are_poisson() {
        for k in [1u64, 3, 1000, 40_000] {
            let mean = k as f64 * 1.05;
            close(binomial_at_least(k, 1_000_000_000, mean / 1e9), poisson_at_least(k, mean), 1e-4);
        }
    }

    /// Sums in 50 digits (mpmath).
    #[test]
    fn tails_keep_their_digits() {
        for (k, n, p, at_least, at_most) in [
            (3, 1_000_000_000_000, 3e-13, 0.003_599_493_183_081, 0.999_734_188_809_98),
            (5, 1_000_000_000_000, 1.2e-11, 0.992_399_609_319_188, 0.020_341_029_416_393),
            (1000, 1_000_000_000, 9.4e-7, 0.027_045_559_451_849, 0.974_888_170_499_061),
            (40_000, 1_000_000_000, 3.9e-5, 2.318_991_185_252e-7, 0.999_999_774_109_582),
            (200, 1000, 0.17, 0.007_355_924_844_107, 0.994_133_194_553_802),
        ] {
            close(binomial_at_least(k, n, p), at_least, 1e-11);
            close(binomial_at_most(k, n, p), at_most, 1e-11);
        }
    }

    #[test]
    fn the_median_of_a_symmetric_beta_is_a_half() {
        close(incomplete_beta(1e6, 1e6, 0.5, 0.5), 0.5, 1e-10);
        close(incomplete_beta(2.5, 2.5, 0.5, 0.5), 0.5, 1e-13);
    }

    #[test]
    fn the_last_bit_is_found() {
        assert_eq!(last_where(0.0, 1.0, |x| x <= 1e-200), 1e-200);
        assert_eq!(last_where(0.0, 1.0, |_| false), 0.0);
        assert_eq!(last_where(0.0, 1.0, |_| true), 1.0f64.next_down());
    }
}
