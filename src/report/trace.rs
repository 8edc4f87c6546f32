//! The calls of a run as Chrome trace JSON, for Perfetto and `chrome://tracing`: a process a child, a thread a thread, a slice
//! a call, a mark a fault.
//!
//! Format: "Trace Event Format" (Google). Where the run kept every call, all are here; else the last calls before each fault.
//! Written as it is read: a million calls need no more memory than one.

use crate::evidence::Evidence;
use crate::journal::{CallRecord, read_calls};
use crate::store::{RunData, TrialRecord, calls_file};
use crate::vocabulary::Call;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Thread number, in the trace, of what concerns a child as a whole.
const CHILD: usize = 0;

/// Writes the trace of a run. `folder` is where it lies: evidence and calls are read from there.
///
/// # Errors
/// What the writer answered. Files that are missing or damaged leave gaps, which are named in the trace's `otherData`.
pub fn trace(run: &RunData, folder: &Path, out: &mut dyn Write) -> io::Result<()> {
    let mut trace = Trace { out: io::BufWriter::new(out), any: false, gaps: Vec::new() };
    trace.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for trial in &run.trials {
        let arm = run.header.plan.arms.get(trial.arm).map_or("?", |arm| arm.name.as_str());
        let threads = run.header.plan.arms.get(trial.arm).map_or(0, |arm| arm.workload.threads);
        trace.child(trial, arm, threads)?;
        trace.calls(trial, folder)?;
        trace.faults(trial)?;
    }
    let other = serde_json::json!({ "run": run.header.run_id, "gaps": trace.gaps });
    write!(trace.out, "\n],\"otherData\":{other}}}")?;
    trace.out.write_all(b"\n")?;
    trace.out.flush()
}

/// Where ns of the child's clock lie in the run.
#[derive(Clone, Copy)]
struct Origin {
    /// Time of the child's start, ns of its clock.
    spawned_ns: u64,
    /// The same, ns since the run's start.
    at_ns: u64,
}

impl Origin {
    fn of(trial: &TrialRecord) -> Origin {
        Origin { spawned_ns: trial.spawned_ns, at_ns: ns(trial.at) }
    }

    fn run_ns(self, child_ns: u64) -> u64 {
        self.at_ns.saturating_add(child_ns.saturating_sub(self.spawned_ns))
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}

struct Trace<'a> {
    out: io::BufWriter<&'a mut dyn Write>,
    any: bool,
    gaps: Vec<String>,
}

impl Trace<'_> {
    /// Begins an event, with what all have: its phase, process, thread and time.
    fn event(&mut self, phase: char, trial: u64, thread: usize, at_ns: u64) -> io::Result<()> {
        let comma = if self.any { "," } else { "" };
        self.any = true;
        let (us, rest) = (at_ns / 1000, at_ns % 1000);
        write!(self.out, "{comma}\n{{\"ph\":\"{phase}\",\"pid\":{trial},\"tid\":{thread},\"ts\":{us}.{rest:03}")
    }

    fn name(&mut self, what: &str, trial: u64, thread: usize, name: &str) -> io::Result<()> {
        let name = serde_json::Value::from(name);
        self.event('M', trial, thread, 0)?;
        write!(self.out, ",\"name\":\"{what}\",\"args\":{{\"name\":{name}}}}}")
    }

    /// The child itself: its name, its threads' names, and its life as a slice.
    fn child(&mut self, trial: &TrialRecord, arm: &str, threads: usize) -> io::Result<()> {
        let number = trial.number;
        self.name("process_name", number, CHILD, &format!("child {number}: {arm}"))?;
        self.name("thread_name", number, CHILD, "life")?;
        for thread in 0..threads.min(1024) {
            self.name("thread_name", number, thread + 1, &format!("thread {thread}"))?;
        }
        self.name("thread_name", number, threads + 1, "main thread")?;
        let began = ns(trial.at).saturating_add(ns(trial.began_after.unwrap_or(0.0)));
        self.event('X', number, CHILD, began)?;
        let (arm, block) = (serde_json::Value::from(arm), trial.block);
        let length = Micros(ns(trial.seconds));
        write!(
            self.out,
            ",\"dur\":{length},\"name\":{arm},\"args\":{{\"block\":{block},\"rounds\":{}}}}}",
            trial.rounds
        )
    }

    /// The calls: all, or those that evidence holds.
    fn calls(&mut self, trial: &TrialRecord, folder: &Path) -> io::Result<()> {
        let path = calls_file(folder, trial.number);
        let whole = path.exists();
        if whole && let Err(error) = self.every_call(trial, &path)? {
            self.gaps.push(format!("child {}: {error}", trial.number));
        }
        let mut seen = BTreeSet::new();
        for file in trial.faults.iter().filter_map(|fault| fault.evidence_file.as_ref()) {
            match evidence(&folder.join(file)) {
                Ok(evidence) => self.last_calls(trial, &evidence, whole, &mut seen)?,
                Err(error) => self.gaps.push(format!("{}: {error}", file.display())),
            }
        }
        Ok(())
    }

    /// The outer error is the writer's, the inner one the reader's.
    fn every_call(&mut self, trial: &TrialRecord, path: &Path) -> io::Result<io::Result<()>> {
        let blocks = match read_calls(path) {
            Ok(blocks) => blocks,
            Err(error) => return Ok(Err(error)),
        };
        for block in blocks {
            let block = match block {
                Ok(block) => block,
                Err(error) => return Ok(Err(error)),
            };
            if block.lost > 0 {
                self.gaps.push(format!("child {}, thread {}: {} calls lost", trial.number, block.thread, block.lost));
            }
            for call in &block.calls {
                self.call(trial, block.thread, call)?;
            }
        }
        Ok(Ok(()))
    }

    fn last_calls(
        &mut self,
        trial: &TrialRecord,
        evidence: &Evidence,
        have_all: bool,
        seen: &mut BTreeSet<(usize, u64)>,
    ) -> io::Result<()> {
        let Some(journal) = &evidence.journal else { return Ok(()) };
        for (thread, record) in journal.threads.iter().enumerate() {
            for call in record.last.iter().filter(|call| !have_all && seen.insert((thread, call.index))) {
                self.call(trial, thread, call)?;
            }
            if let Some(open) = record.in_flight {
                let length = evidence.at_ns.saturating_sub(open.entered_ns);
                self.slice(trial, thread, open.call, open.entered_ns, length)?;
                write!(self.out, "\"module\":{},\"open\":true}}}}", open.module)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, trial: &TrialRecord, thread: usize, call: &CallRecord) -> io::Result<()> {
        self.slice(trial, thread, call.call, call.enter_ns, call.leave_ns.saturating_sub(call.enter_ns))?;
        write!(self.out, "\"module\":{},\"result\":{}}}}}", call.module, call.result)
    }

    /// A slice up to its arguments.
    fn slice(&mut self, trial: &TrialRecord, thread: usize, call: Call, enter_ns: u64, length: u64) -> io::Result<()> {
        self.event('X', trial.number, thread + 1, Origin::of(trial).run_ns(enter_ns))?;
        let (length, name, phase) = (Micros(length), call.entry(), call.phase());
        write!(self.out, ",\"dur\":{length},\"name\":\"{name}\",\"cat\":\"{phase}\",\"args\":{{")
    }

    fn faults(&mut self, trial: &TrialRecord) -> io::Result<()> {
        for fault in &trial.faults {
            let after = trial.began_after.unwrap_or(0.0) + fault.after_seconds;
            let thread = fault.facts.thread.map_or(CHILD, |thread| thread + 1);
            self.event('i', trial.number, thread, ns(trial.at).saturating_add(ns(after)))?;
            let (kind, owner, family) =
                (fault.facts.kind, fault.judgement.owner, serde_json::Value::from(fault.family_name.as_str()));
            let id = fault.id;
            let name = format!("fault {id}: {kind}");
            write!(
                self.out,
                ",\"s\":\"p\",\"cat\":\"fault\",\"name\":\"{name}\",\"args\":{{\"owner\":\"{owner}\",\"family\":{family}}}}}"
            )?;
        }
        Ok(())
    }
}

/// ns, printed as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

fn evidence(path: &Path) -> io::Result<Evidence> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
