//! The public summary of a run: the shape of `summary.json` and of `--format json`.
//!
//! Names and units are the public surface: they change only with [`SCHEMA`]'s number. Built by `build.rs` from what the
//! store holds, so that a killed run reads the same as a finished one.

pub use crate::stats::{MedianInterval, RateRatio};
pub use crate::store::{Device, Driver, Host, Image};
use crate::vocabulary::{Confidence, Kind, Owner, Phase, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name and number of this shape.
pub const SCHEMA: &str = "cubin-stress/summary/1";

/// Everything that a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run's folder name.
    pub run_id: String,
    /// The command line that began it.
    pub command: Vec<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// When it began, RFC 3339.
    pub started: String,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// The machine.
    pub host: Host,
    /// The exit code; none: the run was killed before it ended.
    pub exit_code: Option<u8>,
    /// The driver.
    pub driver: Driver,
    /// The arms.
    pub arms: Vec<Arm>,
    /// The faults, in order of time. Past the first five of a family only counts are kept.
    pub faults: Vec<Fault>,
    /// Faults that are one bug.
    pub families: Vec<Family>,
    /// The arms against each other; none where there is one arm.
    pub comparison: Option<Comparison>,
    /// Whose fault it is.
    pub verdict: Verdict,
    /// What weakens this run, in words.
    pub warnings: Vec<String>,
}

/// One image under one set of options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: Image,
    /// Children that ran it.
    pub trials: u64,
    /// Seconds that these hammered.
    pub seconds: f64,
    /// Children that did not end by themselves.
    pub children_lost: u64,
    /// Calls, by kind: `load`, `get_function`, `launch`, `sync`, `unload`.
    pub calls: BTreeMap<String, Calls>,
    /// Modules loaded a second.
    pub loads_per_second: f64,
    /// Modules that were kept loaded.
    pub kept: u64,
    /// Launches whose results were read back and compared.
    pub verified: u64,
    /// How much of what is being looked for could have happened.
    pub exposure: Exposure,
    /// Faults found.
    pub faults: u64,
    /// Exact interval (Clopper-Pearson) at the run's confidence.
    pub faults_per_million_launches: Interval,
    /// Time to the first fault of a child; none: no child had a fault.
    pub seconds_to_first_fault: Option<MedianInterval>,
}

/// Totals of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// Calls finished.
    pub count: u64,
    /// Of these, answers other than success.
    pub errors: u64,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99th percentile of the latency, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// Overlaps between calls of different threads on one context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exposure {
    /// What the run is judged by: `overlaps` where the plan allows any, else `launches`.
    pub yardstick: String,
    /// `exact` (all calls were looked at) or `sampled` (windows of the rings, scaled up).
    pub method: String,
    /// Launches that overlapped an unload of another module in another thread (each once).
    pub launch_during_unload: u64,
    /// Loads that overlapped a load in another thread.
    pub load_during_load: u64,
    /// Unloads that overlapped an unload in another thread.
    pub unload_during_unload: u64,
    /// Launches among which overlaps were looked for: what the figures above are scaled from.
    pub launches_looked_at: u64,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Best estimate.
    pub best: f64,
    /// Upper limit; none: unbounded.
    pub high: Option<f64>,
}

impl From<crate::stats::Interval> for Interval {
    fn from(interval: crate::stats::Interval) -> Interval {
        // JSON has no infinity.
        let high = interval.high.is_finite().then_some(interval.high);
        Interval { low: interval.low, best: interval.best, high }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// Its number in the run, from 1.
    pub id: u64,
    /// The arm's name.
    pub arm: String,
    /// The child's number, from 0.
    pub trial: u64,
    /// What kind.
    pub kind: Kind,
    /// What the process was doing.
    pub phase: Phase,
    /// The signal's number.
    pub signal: Option<i32>,
    /// `si_code`.
    pub si_code: Option<i32>,
    /// The fault address; none: not known.
    pub fault_address: Option<u64>,
    /// The driver call in flight in the faulting thread.
    pub call: Option<String>,
    /// The driver's code, for `api_error`.
    pub code: Option<i32>,
    /// The faulting thread's index in the journal.
    pub thread: Option<usize>,
    /// Where the program counter lies.
    pub place: Option<Place>,
    /// The module that holds it.
    pub module: Option<String>,
    /// Program counter as an address in that module.
    pub offset: Option<u64>,
    /// That module's build id.
    pub build_id: Option<String>,
    /// The family's id.
    pub family: String,
    /// Whose fault it is, judged alone.
    pub owner: Owner,
    /// How sure that is; none for `insufficient`.
    pub confidence: Option<Confidence>,
    /// Why, in words.
    pub evidence: Vec<String>,
    /// What could not be taken.
    pub soft_errors: Vec<String>,
    /// How many further faults were folded into this one (consequences of it, or repeats past the first five).
    pub folded: u64,
    /// The full evidence, relative to the run's folder.
    pub evidence_file: Option<PathBuf>,
}

/// Faults that are one bug.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Short and stable.
    pub id: String,
    /// A name that a person can say.
    pub name: String,
    /// Whose fault it is.
    pub owner: Owner,
    /// How many faults.
    pub count: u64,
    /// How many in each arm.
    pub per_arm: BTreeMap<String, u64>,
    /// Ids of some of them.
    pub examples: Vec<u64>,
}

/// The arms against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Blocks run.
    pub blocks: u64,
    /// Rate of the first arm over that of the second.
    pub rate_ratio: RateRatio,
    /// Valid at any time; none: nothing to test.
    pub p_value: Option<f64>,
    /// Which test.
    pub test: String,
    /// Why it stopped.
    pub stopped_because: String,
}

/// Whose fault it is, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The owner.
    pub owner: Owner,
    /// How sure; none for `none` and `insufficient`.
    pub confidence: Option<Confidence>,
    /// One sentence.
    pub text: String,
    /// Why, in words, for and against.
    pub evidence: Vec<String>,
    /// What to do next.
    pub next: String,
}
