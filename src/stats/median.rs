//! The median of a sample, and the interval that holds the distribution's median, for any distribution.

/// The median of values in ascending order; none where there are none.
pub fn median(ordered: &[f64]) -> Option<f64> {
    let middle = ordered.len() / 2;
    match ordered.len() % 2 {
        _ if ordered.is_empty() => None,
        1 => Some(ordered[middle]),
        _ => Some(f64::midpoint(ordered[middle - 1], ordered[middle])),
    }
}

/// The narrowest symmetric pair of order statistics of values in ascending order that holds the median with 95 % or more
/// (David and Nagaraja, Order Statistics, 3rd ed., 7.1); none for fewer than six values.
pub fn median_interval(ordered: &[f64]) -> Option<(f64, f64)> {
    let n = ordered.len();
    // The chance of `rank` values or fewer below the median, summed from logarithms so that many values do not underflow.
    let (mut log, mut below) = (-(n as f64) * std::f64::consts::LN_2, 0.0);
    let mut outside = 0;
    for rank in 0..n / 2 {
        below += f64::exp(log);
        if 2.0 * below > 0.05 {
            break;
        }
        outside = rank + 1;
        log += ((n - rank) as f64 / (rank + 1) as f64).ln();
    }
    let low = usize::checked_sub(outside, 1)?;
    Some((ordered[low], ordered[n - 1 - low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_published_tables() {
        // Ranks from 1, as in the usual tables of the binomial distribution with p = 1/2.
        for (n, low, high) in [(6, 1, 6), (10, 2, 9), (20, 6, 15), (30, 10, 21), (50, 18, 33), (100, 40, 61)] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(median_interval(&values), Some((f64::from(low), f64::from(high))), "{n}");
        }
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
    }

    #[test]
    fn thousands_of_values_do_not_underflow() {
        let values: Vec<f64> = (1..=5000).map(f64::from).collect();
        let (low, high) = median_interval(&values).unwrap();
        // The normal approximation: 2500 -+ 1.96 * sqrt(5000) / 2.
        assert!((low - 2431.0).abs() <= 2.0 && (high - 2570.0).abs() <= 2.0, "{low} {high}");
    }

    #[test]
    fn medians_of_odd_and_even_samples() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
    }
}
