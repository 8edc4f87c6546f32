//! Makes the summary of a run from its records: the same for a run that just ended and for one that was killed.

use super::summary::*;
use crate::journal::{NoteKind, empty_histogram};
use crate::plan::Arm as PlannedArm;
use crate::stats::{Answer, Level, Life, TEST, per_million, seconds_to_first_fault};
use crate::store::{CallStats, FaultRecord, RunData, TrialEnd, TrialRecord};
use crate::supervisor::compare::{self, Pair};
use crate::supervisor::outline::Outline;
use crate::verdict::{ArmFacts, ArmTally, Contrast, Relation, over_run};
use crate::vocabulary::{Call, Phase};
use std::collections::BTreeMap;

/// Faults of one family that are listed whole.
const EXAMPLES: usize = 5;

/// The summary of a run.
pub fn summary(run: &RunData) -> Summary {
    let header = &run.header;
    let plan = &header.plan;
    let of_arm = |arm: usize| run.trials.iter().filter(move |t| t.arm == arm).collect::<Vec<_>>();
    let arms: Vec<Arm> = plan.arms.iter().enumerate().map(|(i, arm)| arm_summary(run, i, arm, &of_arm(i))).collect();
    let tallies: Vec<ArmTally> = arms.iter().enumerate().map(|(i, arm)| tally(arm, &of_arm(i))).collect();
    let outlines: Vec<Outline> = run.trials.iter().map(Outline::from).collect();
    let pairs = compare::pairs(plan, &outlines);
    let contrasts: Vec<Contrast> = pairs.iter().map(|pair| contrast(run, &arms, pair)).collect();
    let verdict = over_run(&tallies, &contrasts);
    let mut driver = header.driver.clone();
    driver.device = run.trials.iter().find_map(|t| t.device.clone());
    driver.bug = plan.sim.bug.clone();
    Summary {
        schema: SCHEMA.to_owned(),
        run_id: header.run_id.clone(),
        command: header.command.clone(),
        seed: plan.seed,
        started: header.started.clone(),
        seconds: run.end.as_ref().map_or_else(|| last_moment(&run.trials), |end| end.seconds),
        host: header.host.clone(),
        exit_code: run.end.as_ref().map(|end| end.exit_code),
        driver,
        families: families(run),
        faults: faults(run),
        arms,
        comparison: pairs.first().map(|pair| comparison(run, pair, compare::all_answered(&pairs))),
        verdict: Verdict {
            owner: verdict.owner,
            confidence: verdict.confidence,
            text: verdict.text,
            evidence: verdict.evidence,
            next: verdict.next,
        },
        warnings: warnings(run),
    }
}

fn last_moment(trials: &[TrialRecord]) -> f64 {
    trials.iter().map(|t| t.at + t.seconds).fold(0.0, f64::max)
}

fn arm_summary(run: &RunData, index: usize, arm: &PlannedArm, trials: &[&TrialRecord]) -> Arm {
    // Giving a context with many kept modules back is not hammering.
    let seconds: f64 = trials.iter().map(|t| t.seconds.min(t.planned_seconds)).sum();
    let calls = calls(trials);
    let launches = calls.get("launch").map_or(0, |c| c.count);
    let loads = calls.get("load").map_or(0, |c| c.count);
    let faults: u64 = trials.iter().map(|t| t.faults.len() as u64).sum();
    Arm {
        name: arm.name.clone(),
        image: run.header.images[index].clone(),
        trials: trials.len() as u64,
        seconds,
        children_lost: trials.iter().filter(|t| !matches!(t.end, TrialEnd::Exited { .. })).count() as u64,
        loads_per_second: if seconds > 0.0 { loads as f64 / seconds } else { 0.0 },
        kept: trials.iter().map(|t| t.kept).sum(),
        verified: trials.iter().map(|t| t.verified).sum(),
        exposure: exposure(arm, trials),
        faults,
        faults_per_million_launches: per_million(faults, launches, Level::USUAL).into(),
        seconds_to_first_fault: first_fault(trials),
        calls,
    }
}

fn exposure(arm: &PlannedArm, trials: &[&TrialRecord]) -> Exposure {
    let mut sum = crate::stats::Exposure::default();
    trials.iter().for_each(|t| sum.add(&t.exposure));
    Exposure {
        yardstick: if arm.workload.can_overlap() { "overlaps" } else { "launches" }.to_owned(),
        method: if sum.is_sampled() { "sampled" } else { "exact" }.to_owned(),
        launch_during_unload: sum.overlaps.launch_during_unload,
        load_during_load: sum.overlaps.load_during_load,
        unload_during_unload: sum.overlaps.unload_during_unload,
        launches_looked_at: sum.launches_looked_at,
    }
}

/// The public names of the five calls, and what counts as each.
const STEPS: [(&str, Phase); 5] = [
    ("load", Phase::Load),
    ("get_function", Phase::GetFunction),
    ("launch", Phase::Launch),
    ("sync", Phase::Sync),
    ("unload", Phase::Unload),
];

fn calls(trials: &[&TrialRecord]) -> BTreeMap<String, Calls> {
    let step = |phase| {
        let stats = trials.iter().flat_map(|t| &t.calls).filter(move |(call, _)| call.phase() == phase);
        calls_of(stats.map(|(_, stats)| stats))
    };
    STEPS.iter().map(|&(name, phase)| (name.to_owned(), step(phase))).collect()
}

fn calls_of<'a>(stats: impl Iterator<Item = &'a CallStats>) -> Calls {
    let mut out = Calls::default();
    let mut merged = empty_histogram();
    for stat in stats {
        out.count += stat.count;
        out.errors += stat.errors;
        for &(value, count) in &stat.buckets {
            // The buckets come from a histogram of this layout; a file that says otherwise loses them.
            let _ = merged.record_n(value, count);
        }
    }
    if !merged.is_empty() {
        out.p50_ns = merged.value_at_quantile(0.5);
        out.p99_ns = merged.value_at_quantile(0.99);
        out.max_ns = merged.max();
    }
    out
}

fn first_fault(trials: &[&TrialRecord]) -> Option<MedianInterval> {
    let life = |t: &&TrialRecord| match t.faults.first() {
        Some(fault) => Life { seconds: fault.after_seconds, faulted: true },
        None => Life { seconds: t.seconds, faulted: false },
    };
    let lives: Vec<Life> = trials.iter().map(life).collect();
    lives.iter().any(|l| l.faulted).then(|| seconds_to_first_fault(&lives, Level::USUAL))
}

fn arm_facts(run: &RunData, index: usize) -> ArmFacts {
    let (arm, image) = (&run.header.plan.arms[index], &run.header.images[index]);
    ArmFacts {
        name: arm.name.clone(),
        tile: image.host_object,
        image: image.sha256.clone(),
        workload: arm.workload.clone(),
    }
}

fn contrast(run: &RunData, arms: &[Arm], pair: &Pair) -> Contrast {
    let (first, second) = pair.test.decided();
    let relation = match pair.test.answer() {
        Answer::Different if first > second => Relation::FirstHigher,
        Answer::Different => Relation::SecondHigher,
        Answer::Alike => Relation::Alike,
        Answer::NotYet => Relation::Open,
    };
    Contrast {
        first: arm_facts(run, 0),
        second: arm_facts(run, pair.other),
        relation,
        faults: (arms[0].faults, arms[pair.other].faults),
        p_value: pair.test.p_value(),
    }
}

fn comparison(run: &RunData, pair: &Pair, answered: bool) -> Comparison {
    let needed = pair.test.seconds_needed(0.9, last_moment(&run.trials));
    let stopped_because = match (answered, needed) {
        (true, _) => "the answer is clear".to_owned(),
        (false, Some(seconds)) => {
            format!("the time was over; at the rates seen {seconds:.0} s more would do with 90 % power")
        }
        (false, None) => "the time was over; too few faults were seen to say how much longer it would take".to_owned(),
    };
    Comparison {
        blocks: pair.test.blocks(),
        rate_ratio: pair.test.rate_ratio(),
        p_value: (pair.test.blocks() > 0).then(|| pair.test.p_value()),
        test: TEST.to_owned(),
        stopped_because,
    }
}

fn tally(arm: &Arm, trials: &[&TrialRecord]) -> ArmTally {
    let overlaps = arm.exposure.yardstick == "overlaps";
    let launches = arm.calls.get("launch").map_or(0, |c| c.count);
    ArmTally {
        name: arm.name.clone(),
        exposure: if overlaps { arm.exposure.launch_during_unload } else { launches },
        yardstick: if overlaps { "launches during an unload".into() } else { "launches".into() },
        faults: trials
            .iter()
            .filter(|t| !t.contaminated)
            .flat_map(|t| &t.faults)
            .map(|f| f.judgement.clone())
            .collect(),
    }
}

fn faults(run: &RunData) -> Vec<Fault> {
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = Vec::new();
    for trial in &run.trials {
        for fault in &trial.faults {
            let count = listed.entry(&fault.family).or_default();
            *count += 1;
            if *count <= EXAMPLES {
                out.push(fault_of(run, trial, fault));
            }
        }
    }
    out
}

fn fault_of(run: &RunData, trial: &TrialRecord, fault: &FaultRecord) -> Fault {
    let facts = &fault.facts;
    Fault {
        id: fault.id,
        arm: run.header.plan.arms[trial.arm].name.clone(),
        trial: trial.number,
        kind: facts.kind,
        phase: facts.phase,
        signal: facts.signal,
        si_code: facts.si_code,
        fault_address: facts.fault_address,
        call: facts.call.map(|c| c.entry().to_owned()),
        code: facts.code,
        thread: facts.thread,
        place: facts.place,
        module: facts.module.clone(),
        offset: facts.offset,
        build_id: facts.build_id.clone(),
        family: fault.family.clone(),
        owner: fault.judgement.owner,
        confidence: fault.judgement.confidence,
        evidence: fault.judgement.evidence.clone(),
        soft_errors: trial.soft_errors.clone(),
        folded: fault.folded,
        evidence_file: fault.evidence_file.clone(),
    }
}

fn families(run: &RunData) -> Vec<Family> {
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    for trial in &run.trials {
        for fault in &trial.faults {
            let family = families.entry(&fault.family).or_insert_with(|| Family {
                id: fault.family.clone(),
                name: fault.family_name.clone(),
                owner: fault.judgement.owner,
                count: 0,
                per_arm: BTreeMap::new(),
                examples: Vec::new(),
            });
            family.count += 1;
            *family.per_arm.entry(run.header.plan.arms[trial.arm].name.clone()).or_default() += 1;
            if family.examples.len() < EXAMPLES {
                family.examples.push(fault.id);
            }
        }
    }
    let mut families: Vec<Family> = families.into_values().collect();
    families.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.id.cmp(&b.id)));
    families
}

fn warnings(run: &RunData) -> Vec<String> {
    let mut warnings = run.end.as_ref().map(|end| end.warnings.clone()).unwrap_or_default();
    if run.end.is_none() {
        warnings.push("this run was cut short: the supervisor did not finish it".to_owned());
    }
    for trial in &run.trials {
        let idle = trial.rounds == 0 && !trial.calls.iter().any(|(call, c)| *call == Call::Load && c.count > 0);
        let words = trial.notes.iter().find(|n| n.kind != NoteKind::Info);
        let first_words = words.map_or("no word from it", |n| n.text.as_str());
        let refused = trial.notes.iter().filter(|n| n.kind == NoteKind::BadPlan && !idle);
        warnings.extend(refused.map(|note| format!("child {}: {}", trial.number, note.text)));
        if idle && trial.faults.iter().all(|fault| fault.evidence_file.is_none()) {
            warnings.push(format!("child {}: 0 iterations, {first_words}", trial.number));
        }
    }
    if run.trials.iter().any(|t| t.contaminated) {
        warnings.push("results after a failed trust gate are marked contaminated and not counted".to_owned());
    }
    warnings.extend(run.soft_errors.iter().cloned());
    warnings
}
