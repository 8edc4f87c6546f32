//! How much of what is suspected really happened: calls that overlapped in time.
//!
//! One definition: a launch is exposed when its [enter, leave] intersects the [enter, leave] of an unload of another module on
//! the same context in another thread. Each launch counts once. Likewise a load that overlaps a load, and an unload that
//! overlaps an unload of another module. Intervals are closed: touching counts.

use crate::journal::{CallRecord, HotCall};
use serde::{Deserialize, Serialize};

/// Overlaps counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlaps {
    /// Launches that overlapped an unload of another module.
    pub launch_during_unload: u64,
    /// Loads that overlapped a load in another thread.
    pub load_during_load: u64,
    /// Unloads that overlapped an unload of another module.
    pub unload_during_unload: u64,
}

/// Overlaps, and the calls among which they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Overlaps.
    pub overlaps: Overlaps,
    /// Launches looked at.
    pub launches: u64,
    /// Loads looked at.
    pub loads: u64,
    /// Unloads looked at.
    pub unloads: u64,
}

/// What one thread did, in order.
#[derive(Clone, Copy, Debug)]
pub struct ThreadCalls<'a> {
    /// Which context its calls went to: only calls on one context overlap.
    pub context: usize,
    /// Its calls, oldest first.
    pub calls: &'a [CallRecord],
}

/// The calls that are to be counted; others serve only as what they overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Calls count that were entered at this time or later (before it, some thread's record is missing), ns.
    pub entered_from: u64,
    /// Calls count that were left after this time (those before were counted already), ns.
    pub left_after: u64,
    /// Calls count that were left at this time or earlier, ns.
    pub left_until: u64,
}

impl Window {
    /// All calls count.
    pub const ALL: Window = Window { entered_from: 0, left_after: 0, left_until: u64::MAX };

    fn counts(&self, call: &CallRecord) -> bool {
        let left = call.leave_ns;
        call.enter_ns >= self.entered_from
            && (left > self.left_after || self.left_after == 0)
            && left <= self.left_until
    }
}

/// A call of interest, while time sweeps over it.
struct Swept {
    thread: usize,
    context: usize,
    module: u64,
    kind: HotCall,
    counts: bool,
    overlapped: bool,
}

/// Counts the overlaps of calls in `window`.
///
/// A sweep over the calls' beginnings and ends in the order of time: n log n in calls, and at most one open call a thread.
pub fn count_overlaps(threads: &[ThreadCalls<'_>], window: &Window) -> Seen {
    let mut calls = Vec::new();
    // (time, whether it is the end, index): the beginning sorts first, so that touching intervals overlap.
    let mut edges = Vec::new();
    for (thread, record) in threads.iter().enumerate().flat_map(|(i, t)| t.calls.iter().map(move |c| (i, c))) {
        let kind = match HotCall::of(record.call) {
            Some(kind @ (HotCall::Load | HotCall::Launch | HotCall::Unload)) => kind,
            _ => continue,
        };
        edges.push((record.enter_ns, false, calls.len()));
        edges.push((record.leave_ns.max(record.enter_ns), true, calls.len()));
        let context = threads[thread].context;
        let counts = window.counts(record);
        calls.push(Swept { thread, context, module: record.module, kind, counts, overlapped: false });
    }
    edges.sort_unstable();
    sweep(&mut calls, &edges);
    seen(&calls)
}

/// Marks every call that overlaps one that matters to it.
fn sweep(calls: &mut [Swept], edges: &[(u64, bool, usize)]) {
    let mut open: Vec<usize> = Vec::new();
    for &(_, end, index) in edges {
        if end {
            if let Some(at) = open.iter().position(|&other| other == index) {
                open.swap_remove(at);
            }
            continue;
        }
        for &other in &open {
            let (this, that) = (&calls[index], &calls[other]);
            if this.context != that.context || this.thread == that.thread {
                continue;
            }
            let (this_counts, that_counts) = match (this.kind, that.kind) {
                (HotCall::Load, HotCall::Load) => (true, true),
                _ if this.module == that.module => (false, false),
                (HotCall::Unload, HotCall::Unload) => (true, true),
                (HotCall::Launch, HotCall::Unload) => (true, false),
                (HotCall::Unload, HotCall::Launch) => (false, true),
                _ => (false, false),
            };
            calls[index].overlapped |= this_counts;
            calls[other].overlapped |= that_counts;
        }
        open.push(index);
    }
}

fn seen(calls: &[Swept]) -> Seen {
    let mut seen = Seen::default();
    for call in calls.iter().filter(|call| call.counts) {
        let (all, overlapped) = match call.kind {
            HotCall::Launch => (&mut seen.launches, &mut seen.overlaps.launch_during_unload),
            HotCall::Load => (&mut seen.loads, &mut seen.overlaps.load_during_load),
            HotCall::Unload => (&mut seen.unloads, &mut seen.overlaps.unload_during_unload),
            HotCall::GetFunction | HotCall::Sync => continue,
        };
        *all += 1;
        *overlapped += u64::from(call.overlapped);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Call;
    use proptest::prelude::*;

    fn call(call: Call, module: u64, enter_ns: u64, leave_ns: u64) -> CallRecord {
        CallRecord { index: 0, call, module, enter_ns, leave_ns, result: 0 }
    }

    fn count(threads: &[&[CallRecord]]) -> Seen {
        let threads = threads.iter().map(|calls| ThreadCalls { context: 0, calls }).collect::<Vec<_>>();
        count_overlaps(&threads, &Window::ALL)
    }

    #[test]
    fn a_launch_counts_once_however_many_unloads_it_meets() {
        let launch = [call(Call::Launch, 1, 100, 200)];
        let unloads =
            [call(Call::Unload, 2, 90, 110), call(Call::LibraryUnload, 3, 120, 130), call(Call::Unload, 4, 200, 300)];
        let seen = count(&[&launch, &unloads]);
        assert_eq!(seen.overlaps, Overlaps { launch_during_unload: 1, ..Overlaps::default() });
        assert_eq!((seen.launches, seen.unloads, seen.loads), (1, 3, 0));
    }

    #[test]
    fn touching_counts_and_missing_by_one_does_not() {
        let launch = [call(Call::Launch, 1, 100, 200)];
        for (enter, leave, expected) in
            [(50, 99, 0), (50, 100, 1), (200, 210, 1), (201, 210, 0), (50, 500, 1), (120, 130, 1)]
        {
            let seen = count(&[&launch, &[call(Call::Unload, 2, enter, leave)]]);
            assert_eq!(seen.overlaps.launch_during_unload, expected, "unload {enter}..{leave}");
        }
    }

    #[test]
    fn the_same_module_thread_or_another_context_does_not_count() {
        let launch = [call(Call::Launch, 1, 100, 200)];
        assert_eq!(count(&[&launch, &[call(Call::Unload, 1, 100, 200)]]).overlaps, Overlaps::default());
        let both = [launch[0], call(Call::Unload, 2, 200, 250)];
        assert_eq!(count(&[&both]).overlaps, Overlaps::default());
        let unload = [call(Call::Unload, 2, 100, 200)];
        let apart = [ThreadCalls { context: 0, calls: &launch }, ThreadCalls { context: 1, calls: &unload }];
        assert_eq!(count_overlaps(&apart, &Window::ALL).overlaps, Overlaps::default());
    }

    #[test]
    fn a_window_counts_each_call_in_one_of_two_halves() {
        let launches = [call(Call::Launch, 1, 10, 20), call(Call::Launch, 1, 25, 40), call(Call::Launch, 1, 45, 50)];
        let unload = [call(Call::Unload, 2, 15, 48)];
        let threads = [ThreadCalls { context: 0, calls: &launches }, ThreadCalls { context: 0, calls: &unload }];
        let first = count_overlaps(&threads, &Window { left_until: 40, ..Window::ALL });
        let second = count_overlaps(&threads, &Window { left_after: 40, ..Window::ALL });
        assert_eq!((first.launches, first.overlaps.launch_during_unload, first.unloads), (2, 2, 0));
        assert_eq!((second.launches, second.overlaps.launch_during_unload, second.unloads), (1, 1, 1));
        let late = count_overlaps(&threads, &Window { entered_from: 25, ..Window::ALL });
        assert_eq!((late.launches, late.overlaps.launch_during_unload), (2, 2), "earlier calls still overlap");
    }

    /// One thread's life: calls that follow each other.
    fn thread(seed: Vec<(u8, u64, u64, u64)>) -> Vec<CallRecord> {
        let mut now = 1;
        seed.into_iter()
            .map(|(kind, module, gap, length)| {
                let enter = now + gap;
                now = enter + length;
                let which = [Call::Load, Call::Launch, Call::Unload, Call::Sync][kind as usize % 4];
                call(which, module, enter, now)
            })
            .collect()
    }

    /// The definition, word by word.
    fn by_definition(threads: &[Vec<CallRecord>], of: HotCall, by: HotCall) -> u64 {
        let all = || threads.iter().enumerate().flat_map(|(t, calls)| calls.iter().map(move |c| (t, c)));
        let is = |call: &CallRecord, kind| HotCall::of(call.call) == Some(kind);
        let meets = |t: usize, c: &CallRecord| {
            all().any(|(u, d)| {
                let other = u != t && (d.module != c.module || of == HotCall::Load);
                other && is(d, by) && d.enter_ns <= c.leave_ns && c.enter_ns <= d.leave_ns
            })
        };
        all().filter(|(t, c)| is(c, of) && meets(*t, c)).count() as u64
    }

    proptest! {
        #[test]
        fn the_sweep_counts_what_the_definition_says(
            seeds in prop::collection::vec(prop::collection::vec((0u8..4, 0u64..6, 0u64..5, 0u64..9), 0..40), 1..6)
        ) {
            let threads = seeds.into_iter().map(thread).collect::<Vec<_>>();
            let seen = count(&threads.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(seen.overlaps.launch_during_unload, by_definition(&threads, HotCall::Launch, HotCall::Unload));
            prop_assert_eq!(seen.overlaps.load_during_load, by_definition(&threads, HotCall::Load, HotCall::Load));
            prop_assert_eq!(seen.overlaps.unload_during_unload, by_definition(&threads, HotCall::Unload, HotCall::Unload));
        }
    }
}
