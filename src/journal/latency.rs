//! Latency buckets laid out as HdrHistogram lays them out, so that counts taken in shared memory merge exactly.
//!
//! The layout follows from three numbers: lowest discernible value 1 ns, highest trackable value one hour, two significant
//! digits. The formulas are those of HdrHistogram (`getBucketIndex`, `getSubBucketIndex`, `countsArrayIndex`); a property test
//! below compares them with the `hdrhistogram` crate.

use crate::vocabulary::Call;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest latency told apart, ns: one hour. Longer ones count as this.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of a latency.
pub const SIGNIFICANT_DIGITS: u8 = 2;
/// Sub-buckets of a bucket: the power of two at or above 2 * 10^digits.
const SUB_BUCKETS: u64 = 256;
const SUB_BUCKET_HALF_BITS: u32 = 7;
const LEADING_ZEROS_BASE: u32 = 64 - SUB_BUCKET_HALF_BITS - 1;
/// Counters of a histogram.
pub(super) const BUCKETS: usize = bucket_index(HIGHEST_NS) / 128 * 128 + 128;

/// The five calls of the hot loop, whose latencies are kept. Those of `cuLibrary*` count with their `cuModule*` equivalents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HotCall {
    /// Loading a module or library.
    Load,
    /// Looking a kernel up.
    GetFunction,
    /// Launching.
    Launch,
    /// Waiting for a context or a stream.
    Sync,
    /// Unloading a module or library.
    Unload,
}

impl HotCall {
    /// All five, in the order of a round.
    pub const ALL: &'static [HotCall] =
        &[HotCall::Load, HotCall::GetFunction, HotCall::Launch, HotCall::Sync, HotCall::Unload];

    /// The hot call that `call` counts as, if it is one.
    pub const fn of(call: Call) -> Option<HotCall> {
        match call {
            Call::Load | Call::LibraryLoad => Some(HotCall::Load),
            Call::GetFunction | Call::LibraryGetKernel | Call::KernelGetFunction => Some(HotCall::GetFunction),
            Call::Launch => Some(HotCall::Launch),
            Call::Sync | Call::StreamSync => Some(HotCall::Sync),
            Call::Unload | Call::LibraryUnload => Some(HotCall::Unload),
            _ => None,
        }
    }

    /// Its name in a summary.
    pub const fn word(self) -> &'static str {
        match self {
            HotCall::Load => "load",
            HotCall::GetFunction => "get_function",
            HotCall::Launch => "launch",
            HotCall::Sync => "sync",
            HotCall::Unload => "unload",
        }
    }
}

/// Which counter counts a latency of `ns`, which must not exceed [`HIGHEST_NS`].
pub(super) const fn bucket_index(ns: u64) -> usize {
    let bucket = LEADING_ZEROS_BASE - (ns | (SUB_BUCKETS - 1)).leading_zeros();
    let sub_bucket = (ns >> bucket) as usize;
    (((bucket + 1) as usize) << SUB_BUCKET_HALF_BITS) + sub_bucket - (1 << SUB_BUCKET_HALF_BITS)
}

/// The least latency, ns, that counter `index` counts.
pub(super) const fn bucket_value(index: usize) -> u64 {
    let above = index >> SUB_BUCKET_HALF_BITS;
    let half = 1 << SUB_BUCKET_HALF_BITS;
    let sub_bucket = (index & (half - 1)) as u64;
    if above == 0 { sub_bucket } else { (sub_bucket + half as u64) << (above - 1) }
}

/// An empty histogram of this layout.
///
/// # Panics
/// Never: the bounds are constants that the crate accepts.
pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS).expect("constant bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_many_counters_as_hdrhistogram_has() {
        assert_eq!(BUCKETS, empty_histogram().distinct_values());
        assert!(bucket_index(HIGHEST_NS) < BUCKETS);
    }

    #[test]
    fn every_counter_is_the_one_of_its_value() {
        let all = empty_histogram();
        for index in 0..BUCKETS {
            assert_eq!(bucket_index(bucket_value(index)), index);
            assert_eq!(all.lowest_equivalent(bucket_value(index)), bucket_value(index));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn a_value_counts_where_hdrhistogram_counts_it(magnitude in 0u32..42, low in any::<u64>()) {
            let ns = ((1u64 << magnitude) | (low & ((1 << magnitude) - 1))).min(HIGHEST_NS);
            let mut theirs = empty_histogram();
            theirs.record(ns).unwrap();
            let (counter, _) = theirs.iter_all().enumerate().find(|(_, step)| step.count_at_value() == 1).unwrap();
            prop_assert_eq!(bucket_index(ns), counter);
            prop_assert_eq!(bucket_value(counter), theirs.lowest_equivalent(ns));
        }
    }
}
