//! The interleaving around a fault: what every thread did in the last moments, with the launches that met an unload marked.
//!
//! Plain data for a picture: `html` draws it.

use crate::evidence::Evidence;
use crate::journal::{CallRecord, HotCall, Snapshot};
use crate::vocabulary::Call;
use serde::Serialize;

/// What every thread did before a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of the stretch of time that is shown, ns. It ends at the fault.
    pub span_ns: u64,
    /// The threads that did anything in it.
    pub lanes: Vec<Lane>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Its index in the journal.
    pub thread: usize,
    /// Its name for people.
    pub label: String,
    /// Whether it is the one that faulted.
    pub faulted: bool,
    /// Its calls, oldest first.
    pub slices: Vec<Slice>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slice {
    /// Which call.
    pub call: Call,
    /// Module serial, 0 where no module is concerned.
    pub module: u64,
    /// Entered at, ns from the start of the stretch (0 where it was entered before).
    pub start_ns: u64,
    /// Left at, ns from the start of the stretch; that of the fault where it was not left.
    pub end_ns: u64,
    /// The driver's answer; none: the call was open.
    pub result: Option<i32>,
    /// Whether it is a launch that met an unload of another module in another thread, or such an unload.
    pub overlapping: bool,
}

/// The timeline of the last `span_ns` before a fault; none where the journal is empty or missing.
///
/// Where the last calls go back less far than that, it begins where the first of all threads' records does. `shared_context` says
/// whether calls of different threads go to one context: only then do they overlap.
pub fn of(evidence: &Evidence, span_ns: u64, shared_context: bool) -> Option<Timeline> {
    let journal = evidence.journal.as_ref()?;
    let end = evidence.at_ns.max(latest(journal));
    let oldest = journal.threads.iter().flat_map(first_entered).min()?;
    let start = end.saturating_sub(span_ns).max(oldest);
    let faulted = faulted_thread(evidence, journal);
    let mut lanes: Vec<Lane> = (0..journal.threads.len())
        .map(|thread| Lane {
            thread,
            label: label(thread, journal),
            faulted: faulted == Some(thread),
            slices: slices(journal, thread, start, end),
        })
        .filter(|lane| !lane.slices.is_empty())
        .collect();
    if shared_context {
        mark_overlaps(&mut lanes);
    }
    (!lanes.is_empty()).then(|| Timeline { span_ns: end - start, lanes })
}

fn latest(journal: &Snapshot) -> u64 {
    journal.threads.iter().filter_map(|t| t.last.last()).map(|call| call.leave_ns).max().unwrap_or(0)
}

fn first_entered(thread: &crate::journal::ThreadSnapshot) -> Option<u64> {
    thread.last.first().map(|call| call.enter_ns).or(thread.in_flight.map(|open| open.entered_ns))
}

fn faulted_thread(evidence: &Evidence, journal: &Snapshot) -> Option<usize> {
    let tid = evidence.tid?;
    journal.threads.iter().position(|thread| thread.tid == tid)
}

fn label(thread: usize, journal: &Snapshot) -> String {
    if thread + 1 == journal.threads.len() { "main thread".to_owned() } else { format!("thread {thread}") }
}

fn slices(journal: &Snapshot, thread: usize, start: u64, end: u64) -> Vec<Slice> {
    let record = &journal.threads[thread];
    let slice = |call: &CallRecord| Slice {
        call: call.call,
        module: call.module,
        start_ns: call.enter_ns.max(start) - start,
        end_ns: call.leave_ns - start,
        result: Some(call.result),
        overlapping: false,
    };
    let open = record.in_flight.map(|open| Slice {
        call: open.call,
        module: open.module,
        start_ns: open.entered_ns.clamp(start, end) - start,
        end_ns: end - start,
        result: None,
        overlapping: false,
    });
    record.last.iter().filter(|call| call.leave_ns >= start).map(slice).chain(open).collect()
}

/// Marks launches and unloads of different modules in different threads that intersect.
fn mark_overlaps(lanes: &mut [Lane]) {
    let of_kind = |kind| move |slice: &Slice| HotCall::of(slice.call) == Some(kind);
    let mut meetings = Vec::new();
    for (a, lane) in lanes.iter().enumerate() {
        for (i, launch) in lane.slices.iter().enumerate().filter(|(_, s)| of_kind(HotCall::Launch)(s)) {
            for (b, other) in lanes.iter().enumerate().filter(|(b, _)| *b != a) {
                // A thread's calls follow each other: those that can meet the launch stand together.
                let from = other.slices.partition_point(|s| s.end_ns < launch.start_ns);
                let meets = other.slices[from..].iter().enumerate().take_while(|(_, s)| s.start_ns <= launch.end_ns);
                let unloads = meets.filter(|(_, s)| of_kind(HotCall::Unload)(s) && s.module != launch.module);
                meetings.extend(unloads.map(|(j, _)| ((a, i), (b, from + j))));
            }
        }
    }
    for (a, i) in meetings.into_iter().flat_map(|(launch, unload)| [launch, unload]) {
        lanes[a].slices[i].overlapping = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{ClockSource, InFlight, ThreadSnapshot};

    fn record(call: Call, module: u64, enter_ns: u64, leave_ns: u64) -> CallRecord {
        CallRecord { index: 0, call, module, enter_ns, leave_ns, result: 0 }
    }

    fn evidence() -> Evidence {
        let faulting = ThreadSnapshot {
            tid: 11,
            last: vec![record(Call::Load, 5, 100, 300), record(Call::GetFunction, 5, 300, 320)],
            in_flight: Some(InFlight { call: Call::Launch, module: 5, entered_ns: 900 }),
            ..ThreadSnapshot::default()
        };
        let other = ThreadSnapshot {
            tid: 12,
            last: vec![
                record(Call::Unload, 3, 200, 400),
                record(Call::Unload, 4, 800, 950),
                record(Call::Unload, 5, 960, 970),
            ],
            ..ThreadSnapshot::default()
        };
        let journal = Snapshot {
            clock: ClockSource::Tsc,
            read_ns: 1100,
            began_ns: Some(50),
            finished: false,
            threads: vec![faulting, other, ThreadSnapshot::default()],
            notes: vec![],
            soft_errors: vec![],
        };
        let empty = serde_json::json!({
            "schema": "", "watch": "ptrace", "trigger": {"what": "exit", "status": 0}, "pid": 10, "tid": 11, "at_ns": 1000,
            "place": "libcuda", "place_note": null, "address_class": "unknown", "threads": [], "modules": [], "memory": [],
            "executable_mappings": [], "journal": null, "stderr_tail": "", "soft_errors": [],
        });
        Evidence { journal: Some(journal), ..serde_json::from_value(empty).unwrap() }
    }

    #[test]
    fn the_launch_and_the_unload_that_it_met_are_marked() {
        let timeline = of(&evidence(), 700, true).unwrap();
        assert_eq!((timeline.span_ns, timeline.lanes.len()), (700, 2));
        let [faulting, other] = &timeline.lanes[..] else { panic!("{timeline:?}") };
        assert!(faulting.faulted && !other.faulted && faulting.label == "thread 0");
        let launch = faulting.slices.last().unwrap();
        assert_eq!((launch.call, launch.start_ns, launch.end_ns, launch.result), (Call::Launch, 600, 700, None));
        assert!(launch.overlapping);
        let marked: Vec<u64> = other.slices.iter().filter(|s| s.overlapping).map(|s| s.module).collect();
        assert_eq!(marked, [4], "not the one that was over, nor that of the same module");
        assert_eq!(faulting.slices[0].start_ns, 0, "entered before the stretch");
        assert!(!of(&evidence(), 700, false).unwrap().lanes[0].slices.last().unwrap().overlapping);
    }

    #[test]
    fn it_begins_with_the_first_record_where_there_is_no_older() {
        assert_eq!(of(&evidence(), u64::MAX, true).unwrap().span_ns, 900);
        assert_eq!(of(&Evidence { journal: None, ..evidence() }, 700, true), None);
    }
}
