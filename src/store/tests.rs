//! Records for tests.

use super::*;
use crate::journal::{Note, NoteKind};
use crate::plan::{Arm, DriverKind, RunPlan, Workload};
use crate::stats::{Exposure, Overlaps};
use crate::verdict;
use crate::vocabulary::{Call, Kind};

/// A header of one arm.
pub fn header() -> RunHeader {
    RunHeader {
        schema: RUN_SCHEMA.into(),
        run_id: "run".into(),
        command: vec!["stress".into(), "a.cubin".into()],
        started: "2026-01-01T00:00:00Z".into(),
        plan: RunPlan {
            arms: vec![Arm { name: "a".into(), image: "a.cubin".into(), workload: Workload::default() }],
            ..RunPlan::default()
        },
        driver: Driver {
            kind: DriverKind::Simulated,
            path: "libcuda.so.1".into(),
            version: None,
            build_id: None,
            device: None,
            bug: None,
        },
        images: vec![Image {
            path: "a.cubin".into(),
            sha256: "00".into(),
            compiler: "ptxas".into(),
            compiler_version: None,
            arch: Some("sm_120".into()),
            kernels: vec!["repro_kernel".into()],
            host_object: false,
        }],
        host: Host::default(),
    }
}

/// A trial that did a thousand loads and launches without a fault.
pub fn trial(number: u64) -> TrialRecord {
    let done = |count| CallStats { count, errors: 0, buckets: vec![(1_000, count)] };
    TrialRecord {
        number,
        arm: 0,
        block: number,
        seed: 1,
        planned_seconds: 1.0,
        seconds: 1.0,
        at: number as f64,
        spawned_ns: 1_000_000_000 * (number + 1),
        began_after: Some(0.01),
        end: TrialEnd::Exited { code: 0 },
        calls: [(Call::Load, done(1_000)), (Call::Launch, done(1_000))].into(),
        rounds: 1_000,
        kept: 250,
        verified: 10,
        exposure: Exposure {
            launches: 1_000,
            overlaps: Overlaps { launch_during_unload: 500, ..Overlaps::default() },
            launches_looked_at: 100,
        },
        device: None,
        notes: vec![],
        faults: vec![],
        contaminated: false,
        soft_errors: vec![],
    }
}

/// A fault of this kind, so many seconds after the first call.
pub fn fault(kind: Kind, after_seconds: f64) -> FaultRecord {
    let note = Note {
        kind: NoteKind::ApiError,
        thread: Some(0),
        call: Some(Call::Launch),
        code: 700,
        module: 1,
        live_modules: 1,
        at_ns: 0,
        text: String::new(),
    };
    let facts = verdict::Facts { kind, ..verdict::of_note(&note, None, false, &Workload::default()) };
    let family = verdict::family_of(&facts);
    FaultRecord {
        id: 1,
        judgement: verdict::alone(&facts),
        facts,
        family: family.id,
        family_name: family.name,
        after_seconds,
        folded: 0,
        evidence_file: None,
    }
}
