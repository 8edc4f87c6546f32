//! Was the driver's API used legally, by the journal?
//!
//! Looks only at what the rings still hold: a violation that has left them is not seen, and its absence is said as "no call in
//! the journal broke the contract", never as "there was none".

use crate::journal::{CallRecord, Snapshot};
use crate::plan::Workload;
use crate::vocabulary::{Call, Phase};
use serde::{Deserialize, Serialize};

/// A call that the API does not allow, and the call that made it so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// What was broken, in words that name both calls.
    pub text: String,
    /// Thread of the illegal call.
    pub thread: usize,
    /// The illegal call.
    pub call: Call,
    /// The module that it concerns.
    pub module: u64,
}

/// One call of one thread, finished or not.
#[derive(Clone, Copy)]
struct Step {
    thread: usize,
    call: Call,
    module: u64,
    enter_ns: u64,
    leave_ns: Option<u64>,
    ok: bool,
}

/// The first violation that the journal shows, by time.
pub fn check(journal: &Snapshot, _workload: &Workload) -> Option<Violation> {
    let steps = steps(journal);
    let unloads: Vec<&Step> = steps.iter().filter(|s| s.call.phase() == Phase::Unload && s.module != 0).collect();
    let stale = steps.iter().find_map(|s| stale_use(s, &unloads));
    let unsynchronised = unloads.iter().find_map(|unload| unsynchronised(unload, &steps));
    stale.or(unsynchronised)
}

/// All calls in order of entry.
fn steps(journal: &Snapshot) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (thread, record) in journal.threads.iter().enumerate() {
        steps.extend(record.last.iter().map(|c| finished(thread, c)));
        steps.extend(record.in_flight.map(|f| Step {
            thread,
            call: f.call,
            module: f.module,
            enter_ns: f.entered_ns,
            leave_ns: None,
            ok: true,
        }));
    }
    steps.sort_by_key(|s| s.enter_ns);
    steps
}

fn finished(thread: usize, c: &CallRecord) -> Step {
    let (call, module, enter_ns) = (c.call, c.module, c.enter_ns);
    Step { thread, call, module, enter_ns, leave_ns: Some(c.leave_ns), ok: c.result == 0 }
}

/// A look-up, launch or second unload of a module after its unload began.
fn stale_use(step: &Step, unloads: &[&Step]) -> Option<Violation> {
    let uses = matches!(step.call.phase(), Phase::GetFunction | Phase::Launch | Phase::Unload);
    let unload = unloads
        .iter()
        .find(|u| u.module == step.module && u.ok && u.enter_ns < step.enter_ns && !std::ptr::eq(**u, step))?;
    uses.then(|| Violation {
        text: format!(
            "thread {} called {} with module {}, whose {} by thread {} had begun {} ns before",
            step.thread,
            step.call,
            step.module,
            unload.call,
            unload.thread,
            step.enter_ns - unload.enter_ns
        ),
        thread: step.thread,
        call: step.call,
        module: step.module,
    })
}

/// An unload with a launch of the same module before it and no wait for the device between them.
fn unsynchronised(unload: &Step, steps: &[Step]) -> Option<Violation> {
    let launch = steps
        .iter()
        .rev()
        .find(|s| s.call == Call::Launch && s.module == unload.module && s.enter_ns < unload.enter_ns && s.ok)?;
    let waited = steps.iter().any(|s| {
        s.call.phase() == Phase::Sync
            && s.enter_ns >= launch.enter_ns
            && s.leave_ns.is_some_and(|l| l <= unload.enter_ns)
    });
    (!waited).then(|| Violation {
        text: format!(
            "thread {} called {} of module {} without waiting for its {} by thread {}",
            unload.thread, unload.call, unload.module, launch.call, launch.thread
        ),
        thread: unload.thread,
        call: unload.call,
        module: unload.module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{ClockSource, InFlight, ThreadSnapshot};

    fn call(call: Call, module: u64, enter_ns: u64) -> CallRecord {
        CallRecord { index: enter_ns, call, module, enter_ns, leave_ns: enter_ns + 5, result: 0 }
    }

    fn journal(threads: Vec<ThreadSnapshot>) -> Snapshot {
        Snapshot {
            clock: ClockSource::Tsc,
            read_ns: 1_000,
            began_ns: Some(0),
            finished: false,
            threads,
            notes: vec![],
            soft_errors: vec![],
        }
    }

    fn thread(last: Vec<CallRecord>, in_flight: Option<InFlight>) -> ThreadSnapshot {
        ThreadSnapshot { tid: 1, last, in_flight, ..Default::default() }
    }

    #[test]
    fn the_plain_loop_is_legal() {
        let round = |m: u64, t: u64| {
            vec![
                call(Call::Load, m, t),
                call(Call::GetFunction, m, t + 10),
                call(Call::Launch, m, t + 20),
                call(Call::Sync, 0, t + 30),
                call(Call::Unload, m, t + 40),
            ]
        };
        let two = journal(vec![thread(round(1, 0), None), thread(round(2, 3), None)]);
        assert_eq!(check(&two, &Workload::default()), None);
    }

    #[test]
    fn a_launch_of_an_unloaded_module_names_both_calls() {
        let last = vec![call(Call::Load, 1, 0), call(Call::GetFunction, 1, 10), call(Call::Unload, 1, 20)];
        let in_flight = Some(InFlight { call: Call::Launch, module: 1, entered_ns: 30 });
        let violation = check(&journal(vec![thread(last, in_flight)]), &Workload::default()).unwrap();
        assert_eq!((violation.call, violation.module, violation.thread), (Call::Launch, 1, 0));
        assert!(violation.text.contains("cuLaunchKernel") && violation.text.contains("cuModuleUnload"));
    }

    #[test]
    fn an_unload_without_a_wait_is_a_violation() {
        let last = vec![call(Call::Load, 1, 0), call(Call::Launch, 1, 20), call(Call::Unload, 1, 40)];
        let violation = check(&journal(vec![thread(last, None)]), &Workload::default()).unwrap();
        assert_eq!(violation.call, Call::Unload);
        assert!(violation.text.contains("without waiting"));
    }
}
