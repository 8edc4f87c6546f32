//! Saddle-point building blocks of binomial and Poisson probabilities, accurate where gamma functions of large numbers are not.
//!
//! Source: C. Loader, "Fast and Accurate Computation of Binomial Probabilities" (2000). With 10^9 launches a difference of
//! log-gammas has lost ten digits; these have lost none.

use std::f64::consts::PI;

/// `ln(sqrt(2 pi))`.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// What Stirling's formula lacks: `ln(n!) - ln(sqrt(2 pi n) (n/e)^n)`.
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - HALF_LN_TWO_PI;
    }
    let n2 = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / n2) / n2) / n2) / n2) / n
}

/// Deviance of `x` from `mean`: `x ln(x / mean) + mean - x`, without cancellation where they are close. `above` is `x - mean`,
/// which the caller may know better than the subtraction.
fn deviance(x: f64, mean: f64, above: f64) -> f64 {
    if above.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - above;
    }
    let v = above / (x + mean);
    let mut sum = above * v;
    let mut term = 2.0 * x * v;
    for j in 1..1000 {
        term *= v * v;
        let next = sum + term / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Probability of exactly `k` of `n` at `p` each; `q` is `1 - p`. `k` and `n` need not be whole.
pub(super) fn binomial_probability(k: f64, n: f64, p: f64, q: f64) -> f64 {
    if p == 0.0 || q == 0.0 {
        return if (p == 0.0 && k == 0.0) || (q == 0.0 && k == n) { 1.0 } else { 0.0 };
    }
    if k == 0.0 {
        return (n * if p < 0.5 { libm::log1p(-p) } else { q.ln() }).exp();
    }
    if k == n {
        return (n * if q < 0.5 { libm::log1p(-q) } else { p.ln() }).exp();
    }
    let rest = n - k;
    // From the smaller of the two probabilities: the other has lost the digits that matter when `n` is large.
    let above = if p <= q { k - n * p } else { n * q - rest };
    let exponent = stirling_error(n)
        - stirling_error(k)
        - stirling_error(rest)
        - deviance(k, n * p, above)
        - deviance(rest, n * q, -above);
    (n / (2.0 * PI * k * rest)).sqrt() * exponent.exp()
}

/// Probability of exactly `k` where `mean` are expected.
pub(super) fn poisson_probability(k: f64, mean: f64) -> f64 {
    if mean == 0.0 {
        return if k == 0.0 { 1.0 } else { 0.0 };
    }
    if k == 0.0 {
        return (-mean).exp();
    }
    (-stirling_error(k) - deviance(k, mean, k - mean)).exp() / (2.0 * PI * k).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn small_cases_are_the_textbook_formula() {
        close(binomial_probability(3.0, 10.0, 0.5, 0.5), 120.0 / 1024.0);
        close(binomial_probability(0.0, 4.0, 0.25, 0.75), 0.75f64.powi(4));
        close(binomial_probability(4.0, 4.0, 0.25, 0.75), 0.25f64.powi(4));
        close(poisson_probability(2.0, 3.0), 4.5 * (-3.0f64).exp());
        assert_eq!(binomial_probability(0.0, 5.0, 0.0, 1.0), 1.0);
        assert_eq!(binomial_probability(1.0, 5.0, 0.0, 1.0), 0.0);
    }

    #[test]
    fn the_two_pieces_of_stirlings_error_meet() {
        assert!((stirling_error(15.0) - stirling_error(15.000_000_1)).abs() < 1e-9);
        let sum: f64 = (0..=40).map(|k| binomial_probability(f64::from(k), 40.0, 0.3, 0.7)).sum();
        close(sum, 1.0);
    }
}
