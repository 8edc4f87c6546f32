//! The records that a run folder holds: its header and one line for each trial.
//!
//! Plain data. The trial's line is written and synced when the trial is over; each fault's full evidence before that, while
//! the child still stands.

use crate::journal::Note;
use crate::plan::{DriverKind, RunPlan};
use crate::stats::Exposure;
use crate::verdict::{Facts, Judgement};
use crate::vocabulary::Call;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name and number of the header's shape.
pub const RUN_SCHEMA: &str = "cubin-stress/run/1";

/// What is known before the first child starts (`run.json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// The folder's name.
    pub run_id: String,
    /// The command line.
    pub command: Vec<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// What to do.
    pub plan: RunPlan,
    /// With which driver.
    pub driver: Driver,
    /// The images, one for each arm.
    pub images: Vec<Image>,
    /// On which machine.
    pub host: Host,
}

/// The machine that a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Kernel name and release.
    pub kernel: String,
    /// Processor architecture.
    pub machine: String,
    /// Processors that may be used.
    pub cpus: usize,
    /// Distribution, from os-release.
    pub distribution: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: u64,
}

/// The driver that a run used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Driver {
    /// Real or simulated.
    pub kind: DriverKind,
    /// The library's file.
    pub path: PathBuf,
    /// Its version, such as `595.71.05`, where its name gives one.
    pub version: Option<String>,
    /// GNU build id, hex.
    pub build_id: Option<String>,
    /// The device, once a child has seen one.
    pub device: Option<Device>,
    /// The planted bug; only the simulated driver has any. Written after the verdict, which never sees it.
    pub bug: Option<String>,
}

/// The device that a run used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its architecture, such as `sm_120`.
    pub arch: String,
    /// Hash of its UUID; none where it was not asked for.
    pub uuid_hash: Option<String>,
}

/// The image of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// The file that was named.
    pub path: PathBuf,
    /// SHA-256 of its bytes, hex.
    pub sha256: String,
    /// `tileiras`, `ptxas` or `unknown`.
    pub compiler: String,
    /// Its version, where the image tells.
    pub compiler_version: Option<String>,
    /// Architecture, such as `sm_120`.
    pub arch: Option<String>,
    /// Kernels in it.
    pub kernels: Vec<String>,
    /// Whether it carries host code.
    pub host_object: bool,
}

impl From<&crate::cubin::Image> for Image {
    fn from(image: &crate::cubin::Image) -> Image {
        let compiler = &image.facts.compiler;
        Image {
            path: image.path.clone(),
            sha256: image.sha256.clone(),
            compiler: compiler.kind.word().to_owned(),
            compiler_version: compiler.version.clone(),
            arch: image.arch_name(),
            kernels: image.facts.kernels.iter().flatten().map(|k| k.name.clone()).collect(),
            host_object: image.facts.host_object,
        }
    }
}

/// How a child's life ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TrialEnd {
    /// By itself, with this exit code.
    Exited {
        /// The code.
        code: i32,
    },
    /// Of this signal.
    Signaled {
        /// Its number.
        signal: i32,
    },
    /// The supervisor killed it.
    Killed {
        /// Why.
        why: String,
    },
}

/// Totals and latencies of one call in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallStats {
    /// Calls finished.
    pub count: u64,
    /// Of these, answers other than success.
    pub errors: u64,
    /// The latency histogram's occupied buckets: lowest value of the bucket in ns, and count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

/// A fault as the trial's line holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Its number in the run, from 1.
    pub id: u64,
    /// What the verdict looks at.
    pub facts: Facts,
    /// What it says of this fault alone.
    pub judgement: Judgement,
    /// The family's id.
    pub family: String,
    /// The family's name.
    pub family_name: String,
    /// Seconds from the child's first call to the fault.
    pub after_seconds: f64,
    /// Further faults that are consequences of this one.
    pub folded: u64,
    /// The full evidence, relative to the run's folder; none past the first five of a family.
    pub evidence_file: Option<PathBuf>,
}

/// One child's life (a line of `trials.jsonl`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Its number in the run, from 0.
    pub number: u64,
    /// Index of its arm.
    pub arm: usize,
    /// Its block, from 0.
    pub block: u64,
    /// Its seed.
    pub seed: u64,
    /// How long it was to run, seconds.
    pub planned_seconds: f64,
    /// How long it ran, from its first call to its end, seconds.
    pub seconds: f64,
    /// When it was started, seconds since the run's start.
    pub at: f64,
    /// The same, ns of `CLOCK_MONOTONIC`: where the times in evidence and in files of calls lie. 0: not known.
    #[serde(default)]
    pub spawned_ns: u64,
    /// From its start to the first call of its loop, seconds; none: it never got there.
    pub began_after: Option<f64>,
    /// How it ended.
    pub end: TrialEnd,
    /// Calls.
    pub calls: BTreeMap<Call, CallStats>,
    /// Rounds of the loop finished.
    pub rounds: u64,
    /// Modules that were kept.
    pub kept: u64,
    /// Launches whose results were compared.
    pub verified: u64,
    /// Overlaps.
    pub exposure: Exposure,
    /// The device that it saw.
    pub device: Option<Device>,
    /// What it wrote down in words.
    pub notes: Vec<Note>,
    /// Faults.
    pub faults: Vec<FaultRecord>,
    /// Set where a known good image failed after an earlier trial: nothing found here counts.
    #[serde(default)]
    pub contaminated: bool,
    /// What could not be taken or read.
    pub soft_errors: Vec<String>,
}

/// How the run ended (`end.json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The exit code.
    pub exit_code: u8,
    /// How long the run took, seconds.
    pub seconds: f64,
    /// What weakens it, in words.
    pub warnings: Vec<String>,
}
