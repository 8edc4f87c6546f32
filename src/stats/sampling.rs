//! Exposure of a running child: windows of its rings, taken now and then, scaled to all its launches.
//!
//! The hot loop counts nothing for this. Where calls are slow enough, windows join without a gap and the count is complete;
//! where they are not, it is a sample, and says so.

use super::exposure::{Overlaps, Seen, ThreadCalls, Window, count_overlaps};
use crate::journal::{CallWindow, HotCall, Journal, Totals};
use serde::{Deserialize, Serialize};

/// Calls read a sample, all threads together: some 0.3 ms of work, ten times a second.
const CALLS_A_SAMPLE: usize = 8192;
/// Fewest calls read of a thread.
const FEWEST_CALLS: usize = 64;

/// Gathers overlaps over one child's life.
#[derive(Clone, Debug)]
pub struct OverlapSampler {
    shared_context: bool,
    counted_until: u64,
    seen: Seen,
    samples: u64,
}

impl OverlapSampler {
    /// For a child whose threads share one context, or have one each (then nothing overlaps).
    pub fn new(shared_context: bool) -> OverlapSampler {
        OverlapSampler { shared_context, counted_until: 0, seen: Seen::default(), samples: 0 }
    }

    /// Counts one window. Calls of windows already counted are not counted again.
    pub fn take(&mut self, window: &CallWindow) {
        if window.until_ns <= self.counted_until {
            return;
        }
        let context = |index| if self.shared_context { 0 } else { index };
        let threads = window.threads.iter().enumerate();
        let threads = threads.map(|(i, calls)| ThreadCalls { context: context(i), calls }).collect::<Vec<_>>();
        let counted =
            Window { entered_from: window.from_ns, left_after: self.counted_until, left_until: window.until_ns };
        self.seen.add(&count_overlaps(&threads, &counted));
        self.counted_until = window.until_ns;
        self.samples += 1;
    }

    /// What was seen so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Scales what was seen to all calls of the child.
    pub fn exposure(&self, totals: &Totals) -> Exposure {
        let scaled = |overlaps, looked_at, call| scale(overlaps, looked_at, totals.of(call).count);
        let Seen { overlaps, launches, loads, unloads } = self.seen;
        Exposure {
            launches: totals.of(HotCall::Launch).count,
            overlaps: Overlaps {
                launch_during_unload: scaled(overlaps.launch_during_unload, launches, HotCall::Launch),
                load_during_load: scaled(overlaps.load_during_load, loads, HotCall::Load),
                unload_during_unload: scaled(overlaps.unload_during_unload, unloads, HotCall::Unload),
            },
            launches_looked_at: launches,
        }
    }
}

impl Seen {
    /// Adds another window's, or another child's.
    pub fn add(&mut self, other: &Seen) {
        self.overlaps.add(&other.overlaps);
        self.launches += other.launches;
        self.loads += other.loads;
        self.unloads += other.unloads;
    }
}

impl Overlaps {
    /// Adds another's.
    pub fn add(&mut self, other: &Overlaps) {
        self.launch_during_unload += other.launch_during_unload;
        self.load_during_load += other.load_during_load;
        self.unload_during_unload += other.unload_during_unload;
    }
}

/// `overlaps` of `looked_at` calls, where `all` were made. Rounded down: exposure is not claimed that was not seen.
fn scale(overlaps: u64, looked_at: u64, all: u64) -> u64 {
    if looked_at == 0 {
        return 0;
    }
    let all = u128::from(all.max(looked_at));
    u64::try_from(u128::from(overlaps) * all / u128::from(looked_at)).unwrap_or(u64::MAX)
}

/// How much a child, or an arm, was exposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// Launches made.
    pub launches: u64,
    /// Overlaps, scaled to all calls.
    #[serde(flatten)]
    pub overlaps: Overlaps,
    /// Launches among which overlaps were looked for. Fewer than `launches`: the overlaps are an estimate from a sample.
    pub launches_looked_at: u64,
}

impl Exposure {
    /// Adds another child's.
    pub fn add(&mut self, other: &Exposure) {
        self.launches += other.launches;
        self.overlaps.add(&other.overlaps);
        self.launches_looked_at += other.launches_looked_at;
    }

    /// Whether overlaps are an estimate from a sample.
    pub fn is_sampled(&self) -> bool {
        self.launches_looked_at < self.launches
    }
}

impl Journal {
    /// Counts the overlaps among the last calls of each thread. To be called some ten times a second while the child runs,
    /// and once when it is over.
    pub fn sample_overlaps(&self, sampler: &mut OverlapSampler) {
        // The main thread has a record too, but makes no calls of interest.
        let calls = (CALLS_A_SAMPLE / (self.threads() - 1).max(1)).max(FEWEST_CALLS);
        sampler.take(&self.window(calls));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{JournalSpec, JournalWriter, monotonic_ns};
    use crate::vocabulary::Call;

    #[test]
    fn windows_join_without_counting_twice() {
        let journal = Journal::create(&JournalSpec::default()).unwrap();
        let writer = JournalWriter::attach(journal.fd()).unwrap();
        let (mut a, mut b) = (writer.thread(0), writer.thread(1));
        let mut sampler = OverlapSampler::new(true);
        let mut per_thread = OverlapSampler::new(false);
        for round in 0..30 {
            let unload = a.enter(Call::Unload, 2 * round + 1);
            let launch = b.enter(Call::Launch, 2 * round + 2);
            if round % 3 == 0 {
                journal.sample_overlaps(&mut sampler);
            }
            b.leave(launch, 0);
            if round % 3 == 1 {
                journal.sample_overlaps(&mut sampler);
            }
            a.leave(unload, 0);
            let alone = b.enter(Call::Launch, 2 * round + 2);
            b.leave(alone, 0);
            journal.sample_overlaps(&mut per_thread);
            journal.sample_overlaps(&mut sampler);
        }
        let now = monotonic_ns();
        while monotonic_ns() == now {}
        journal.sample_overlaps(&mut sampler);
        assert_eq!(sampler.seen().launches, 60);
        assert_eq!(sampler.seen().overlaps, Overlaps { launch_during_unload: 30, ..Overlaps::default() });
        assert_eq!(per_thread.seen().overlaps, Overlaps::default());
        let exposure = sampler.exposure(&journal.totals());
        assert_eq!((exposure.launches, exposure.overlaps.launch_during_unload, exposure.is_sampled()), (60, 30, false));
    }

    #[test]
    fn a_sample_is_scaled_and_says_so() {
        let journal = Journal::create(&JournalSpec::default()).unwrap();
        let writer = JournalWriter::attach(journal.fd()).unwrap();
        let (mut a, mut b) = (writer.thread(0), writer.thread(1));
        for round in 0..20_000 {
            let unload = a.enter(Call::Unload, 2 * round + 1);
            let launch = b.enter(Call::Launch, 2 * round + 2);
            b.leave(launch, 0);
            a.leave(unload, 0);
        }
        let mut sampler = OverlapSampler::new(true);
        let now = monotonic_ns();
        while monotonic_ns() == now {}
        journal.sample_overlaps(&mut sampler);
        let exposure = sampler.exposure(&journal.totals());
        assert!(exposure.is_sampled() && exposure.launches_looked_at > 1000);
        assert_eq!(exposure.overlaps.launch_during_unload, 20_000);
    }

    #[test]
    fn nothing_seen_is_nothing_claimed() {
        assert_eq!(scale(0, 0, 1000), 0);
        assert_eq!(scale(1, 3, 1000), 333);
        assert_eq!(scale(u64::MAX, 1, u64::MAX), u64::MAX);
        assert_eq!(scale(5, 5, 4), 5, "totals read before the sample");
    }
}
