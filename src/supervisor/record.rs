//! Turns what a child left behind into the trial's record: facts, judgements and families, written down as they come.

use super::schedule::Next;
use super::trial::{End, KillReason, TrialObserver, TrialOutcome};
use crate::evidence::{Evidence, Trigger};
use crate::journal::{HotCall, Note, NoteKind, Progress, Snapshot, Totals};
use crate::plan::Workload;
use crate::store::{CallStats, Device, FaultRecord, RunFolder, TrialEnd, TrialRecord};
use crate::verdict::{self, Facts};
use crate::vocabulary::Call;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Full captures that are kept of one family; more are only counted.
const FULL_CAPTURES: u64 = 5;

/// What is remembered across the children of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    faults: u64,
    captures: u64,
    by_family: BTreeMap<String, u64>,
}

impl Recorder {
    /// Counts a fault; gives its record.
    fn fault(&mut self, facts: Facts, after_seconds: f64, folded: u64) -> FaultRecord {
        self.faults += 1;
        let family = verdict::family_of(&facts);
        *self.by_family.entry(family.id.clone()).or_default() += 1;
        let judgement = verdict::alone(&facts);
        FaultRecord {
            id: self.faults,
            facts,
            judgement,
            family: family.id,
            family_name: family.name,
            after_seconds,
            folded,
            evidence_file: None,
        }
    }

    /// Whether the next fault of this family is still captured whole.
    fn wants_whole(&self, family: &str) -> bool {
        self.by_family.get(family).is_none_or(|&count| count < FULL_CAPTURES)
    }
}

/// Sees one child's faults while it still stands.
pub struct Observer<'a> {
    pub recorder: &'a mut Recorder,
    pub folder: &'a RunFolder,
    pub tile: bool,
    pub workload: &'a Workload,
    pub tick: &'a mut dyn FnMut(&Progress),
    /// Evidence that was written, by its number in the trial.
    pub written: Vec<(u32, PathBuf)>,
    pub soft_errors: Vec<String>,
}

impl TrialObserver for Observer<'_> {
    fn fault(&mut self, evidence: &Evidence) {
        let facts = verdict::of_evidence(evidence, self.tile, self.workload);
        if !self.recorder.wants_whole(&verdict::family_of(&facts).id) {
            return;
        }
        self.recorder.captures += 1;
        let number = self.recorder.captures;
        match self.folder.write_fault(number, evidence) {
            Ok(path) => self.written.push((evidence.number, path)),
            Err(e) => self.soft_errors.push(e.to_string()),
        }
    }

    fn withdrawn(&mut self, number: u32) {
        // The program handled the signal and went on: the trial's record says so, and this is no fault's evidence.
        if let Some(at) = self.written.iter().position(|(other, _)| *other == number) {
            let (_, path) = self.written.remove(at);
            self.folder.remove_fault(&path);
        }
    }

    fn tick(&mut self, progress: &Progress) {
        (self.tick)(progress);
    }
}

impl Observer<'_> {
    /// The trial's record.
    pub fn record(mut self, next: &Next, at: f64, outcome: TrialOutcome) -> TrialRecord {
        let times = outcome.timings;
        let began = times.began_ns.unwrap_or(times.spawned_ns);
        let mut faults = self.captured_faults(&outcome, began);
        faults.extend(self.noted_faults(&outcome.journal, began));
        let notes = outcome.journal.notes;
        let mut soft_errors = outcome.soft_errors;
        soft_errors.extend(outcome.journal.soft_errors);
        soft_errors.append(&mut self.soft_errors);
        TrialRecord {
            number: next.number,
            arm: next.arm,
            block: next.block,
            seed: next.seed,
            planned_seconds: next.seconds,
            seconds: seconds_between(began, times.ended_ns),
            at,
            spawned_ns: times.spawned_ns,
            began_after: times.began_ns.map(|ns| seconds_between(times.spawned_ns, ns)),
            end: end(&outcome.end),
            calls: call_stats(&outcome.totals),
            rounds: outcome.totals.rounds,
            kept: outcome.totals.kept,
            verified: outcome.totals.calls.get(&Call::Verify).map_or(0, |c| c.count),
            exposure: outcome.exposure,
            device: device(&notes),
            notes,
            faults,
            contaminated: false,
            soft_errors,
        }
    }

    /// Crashes and hangs; what follows from another is folded into it.
    fn captured_faults(&mut self, outcome: &TrialOutcome, began: u64) -> Vec<FaultRecord> {
        let mut faults = Vec::new();
        for evidence in outcome.faults.iter().filter(|e| e.follows.is_none() && !ended_by_us(outcome, e)) {
            let facts = verdict::of_evidence(evidence, self.tile, self.workload);
            let folded = outcome.faults.iter().filter(|e| e.follows == Some(evidence.number)).count() as u64;
            let mut fault = self.recorder.fault(facts, seconds_between(began, evidence.at_ns), folded);
            let file = self.written.iter().find(|(number, _)| *number == evidence.number);
            fault.evidence_file = file.map(|(_, path)| path.clone());
            faults.push(fault);
        }
        faults
    }

    /// Errors and wrong results, the first of each kind, call and code; the rest are folded into it.
    fn noted_faults(&mut self, journal: &Snapshot, began: u64) -> Vec<FaultRecord> {
        let mut groups: Vec<(&Note, u64)> = Vec::new();
        for note in journal.notes.iter().filter(|n| is_fault(n.kind)) {
            let same = |n: &Note| n.kind == note.kind && n.call == note.call && n.code == note.code;
            match groups.iter_mut().find(|(first, _)| same(first)) {
                Some((_, folded)) => *folded += 1,
                None => groups.push((note, 0)),
            }
        }
        let mut faults = Vec::new();
        for (note, folded) in groups {
            let facts = verdict::of_note(note, Some(journal), self.tile, self.workload);
            faults.push(self.recorder.fault(facts, seconds_between(began, note.at_ns), folded));
        }
        faults
    }
}

fn seconds_between(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

/// Whether this is only the death that the end of the run brought about.
fn ended_by_us(outcome: &TrialOutcome, evidence: &Evidence) -> bool {
    let by_kill = matches!(evidence.trigger, Trigger::Exit { .. });
    by_kill && outcome.end == End::Killed(KillReason::Ended)
}

/// The device, as the worker wrote it down.
fn device(notes: &[Note]) -> Option<Device> {
    let note = notes.iter().find(|n| n.kind == NoteKind::Info && n.call == Some(Call::DeviceGet))?;
    let arch = if note.code > 0 { format!("sm_{}", note.code) } else { "unknown".to_owned() };
    Some(Device { name: note.text.clone(), arch, uuid_hash: None })
}

fn is_fault(kind: NoteKind) -> bool {
    matches!(kind, NoteKind::ApiError | NoteKind::WrongResult | NoteKind::SetupFailed)
}

fn end(end: &End) -> TrialEnd {
    match end {
        End::Exited(code) => TrialEnd::Exited { code: *code },
        End::Signaled(signal) => TrialEnd::Signaled { signal: *signal },
        End::Killed(why) => TrialEnd::Killed { why: why.to_string() },
    }
}

/// Counts by call; latencies stand with the call that was made most under each hot name.
fn call_stats(totals: &Totals) -> BTreeMap<Call, CallStats> {
    let mut stats: BTreeMap<Call, CallStats> = totals
        .calls
        .iter()
        .map(|(&call, t)| (call, CallStats { count: t.count, errors: t.errors, buckets: Vec::new() }))
        .collect();
    for &hot in HotCall::ALL {
        let most = stats.iter().filter(|(c, _)| HotCall::of(**c) == Some(hot)).max_by_key(|(_, s)| s.count);
        let Some(call) = most.map(|(&call, _)| call) else { continue };
        let histogram = totals.latency(hot);
        let buckets = histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        stats.entry(call).or_default().buckets = buckets;
    }
    stats
}
