//! The sequential test against hand computation; its promises are checked by `simulation.rs`.

use super::*;

fn level(confidence: f64) -> Level {
    Level::new(confidence).unwrap()
}

fn after(first: u64, second: u64) -> SequentialTest {
    let mut test = SequentialTest::new(level(0.99), 1);
    // The rarer outcomes first, spread, so that the running maximum is that of the end.
    for _ in 0..second {
        test.add(Block::Second);
        test.add(Block::First);
    }
    for _ in second..first {
        test.add(Block::First);
    }
    test
}

#[test]
fn a_block_goes_to_the_arm_that_failed_after_less_exposure() {
    let life = |exposure, faulted| ExposedLife { exposure, faulted };
    assert_eq!(Block::of(life(10, true), life(100, false)), Block::First);
    assert_eq!(Block::of(life(10, true), life(100, true)), Block::First);
    assert_eq!(Block::of(life(100, true), life(10, true)), Block::Second);
    assert_eq!(Block::of(life(100, true), life(10, false)), Block::Undecided, "the other was not watched for as long");
    assert_eq!(Block::of(life(100, false), life(10, false)), Block::Undecided);
    assert_eq!(Block::of(life(0, true), life(10, false)), Block::First, "a fault before the first launch");
    assert_eq!(Block::of(life(7, true), life(7, true)), Block::Undecided);
    assert_eq!(Block::of(life(7, false), life(7, true)), Block::Second);
}

/// After n blocks that all fall to one arm, the mixture with Jeffreys' prior gives 2^n C(2n, n) / 4^n (R. Krichevsky and
/// V. Trofimov, IEEE Trans. Inf. Theory 27, 1981).
#[test]
fn straight_losses_are_worth_what_krichevsky_and_trofimov_say() {
    let mut test = SequentialTest::new(level(0.99), 1);
    let mut central = 1.0;
    for n in 1..=12u32 {
        test.add(Block::First);
        central *= f64::from(2 * n - 1) / f64::from(2 * n);
        let expected = 1.0 / (2f64.powi(n as i32) * central);
        assert!((test.p_value() / expected.min(1.0) - 1.0).abs() < 1e-10);
        let answer = if n < 10 { Answer::NotYet } else { Answer::Different };
        assert_eq!(test.answer(), answer, "after {n}");
    }
    assert_eq!((test.decided(), test.blocks()), ((12, 0), 12));
}

#[test]
fn the_interval_leaves_out_one_where_the_test_is_sure() {
    for (first, second) in [(9, 0), (10, 0), (30, 9), (31, 6), (100, 80)] {
        let test = after(first, second);
        let ratio = test.rate_ratio();
        assert_eq!(ratio.low > 1.0, test.answer() == Answer::Different, "{first} to {second}: {ratio:?}");
        assert_eq!(ratio.high.is_none(), second == 0);
        assert!(ratio.best.is_none_or(|best| ratio.low < best && (best - first as f64 / second as f64).abs() < 1e-9));
    }
    assert_eq!(SequentialTest::new(level(0.99), 1).rate_ratio(), RateRatio::UNKNOWN);
}

#[test]
fn two_arms_that_lose_alike_are_alike_in_the_end() {
    assert_eq!(after(5, 5).answer(), Answer::NotYet);
    assert_eq!(after(40, 40).answer(), Answer::Alike);
}

#[test]
fn more_pairs_need_more_evidence() {
    let mut test = SequentialTest::new(level(0.99), 10);
    (0..10).for_each(|_| test.add(Block::First));
    assert_eq!(test.answer(), Answer::NotYet);
}

#[test]
fn what_is_needed_is_counted() {
    assert_eq!(SequentialTest::new(level(0.99), 1).decided_blocks_needed(0.9), None);
    assert_eq!(after(1, 0).decided_blocks_needed(0.9), Some(9), "if only the first arm ever fails");
    assert_eq!(after(10, 0).decided_blocks_needed(0.9), Some(0));
    assert_eq!(after(30, 30).decided_blocks_needed(0.9), None);
    assert_eq!(after(4, 0).seconds_needed(0.9, 8.0), Some(12.0));
    let mixed = after(9, 3).decided_blocks_needed(0.9).unwrap();
    assert!((20..200).contains(&mixed), "{mixed}");
}
