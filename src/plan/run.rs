//! A whole run: its arms, its limits, how it is watched.

use super::{SimSettings, Workload};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which driver library to open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverChoice {
    /// The real one; the simulated one only where there is neither a libcuda nor an NVIDIA device.
    #[default]
    Auto,
    /// The real one or nothing.
    Real,
    /// The simulated one.
    Sim,
    /// This file.
    Path(PathBuf),
}

/// How closely children are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observe {
    /// Only the wait status and the journal.
    None,
    /// ptrace, without the log of executable mappings.
    Light,
    /// Everything.
    #[default]
    Full,
}

/// How much of the calls is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalKind {
    /// The last calls of each thread.
    #[default]
    Ring,
    /// All calls, on disk.
    Full,
}

/// One image under one set of options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name in every table.
    pub name: String,
    /// The image's file.
    pub image: PathBuf,
    /// What its children do.
    pub workload: Workload,
}

/// A limit on a child's resources: `setrlimit`'s name without `RLIMIT_`, lower case, and the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// `nofile`, `as`, `nproc`, ...
    pub name: String,
    /// Soft and hard limit.
    pub value: u64,
}

/// What to do in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The arms, in the order given.
    pub arms: Vec<Arm>,
    /// How long to go on, seconds.
    pub seconds: f64,
    /// Longest life of one child, seconds.
    pub life: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Which driver.
    pub driver: DriverChoice,
    /// Which device.
    pub device: i32,
    /// How the simulated driver is set up.
    pub sim: SimSettings,
    /// Stop after this many faults.
    pub max_faults: Option<u64>,
    /// Stop after this many children.
    pub trials: Option<u64>,
    /// A driver call that is open for this long is a hang, seconds.
    pub hang_after: f64,
    /// How closely to watch.
    pub observe: Observe,
    /// How much to keep of the calls.
    pub journal: JournalKind,
    /// Try a known good image after each lost child.
    pub gate: bool,
    /// Write a core file of each fault.
    pub core: bool,
    /// Limits on children.
    pub rlimits: Vec<ResourceLimit>,
    /// Folder in which the run's folder is made.
    pub out: PathBuf,
    /// How sure a difference between arms must be, 0.5 to 1: the run ends when it is.
    pub confidence: f64,
    /// Fewest calls of the yardstick for a run without a fault to be a pass.
    pub exposure_floor: u64,
}

/// Names that `setrlimit` knows, as they stand in a plan.
pub const RESOURCES: [&str; 16] = [
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];

impl RunPlan {
    /// Checks every value that was not checked where it was said, wherever it came from.
    ///
    /// # Errors
    /// With the option's name, what it says and what it takes.
    pub fn validate(&self) -> Result<(), String> {
        let span = |name: &str, value: f64| match value {
            value if value.is_finite() && (0.001..=3.2e8).contains(&value) => Ok(()),
            value => Err(format!("{name} = {value}: takes 0.001 to 320000000 seconds")),
        };
        span("seconds", self.seconds)?;
        span("life", self.life)?;
        if !(self.hang_after.is_finite() && (0.1..=3.2e8).contains(&self.hang_after)) {
            return Err(format!("hang-after = {}: takes 0.1 to 320000000 seconds", self.hang_after));
        }
        if !(0.5..=0.999_999).contains(&self.confidence) {
            return Err(format!("confidence = {}: takes 0.5 to 0.999999", self.confidence));
        }
        let counts = [("trials", self.trials), ("max-faults", self.max_faults)];
        if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
            return Err(format!("{name} = 0: a run that does nothing is never a pass; takes 1 or more"));
        }
        match self.rlimits.iter().find(|limit| !RESOURCES.contains(&limit.name.as_str())) {
            Some(limit) => Err(format!("rlimit {}: takes one of {}", limit.name, RESOURCES.join(", "))),
            None => Ok(()),
        }
    }
}

impl Default for RunPlan {
    /// No arms, ten seconds, everything watched.
    fn default() -> Self {
        RunPlan {
            arms: Vec::new(),
            seconds: 10.0,
            life: 60.0,
            seed: 0,
            driver: DriverChoice::default(),
            device: 0,
            sim: SimSettings::default(),
            max_faults: None,
            trials: None,
            hang_after: 10.0,
            observe: Observe::default(),
            journal: JournalKind::default(),
            gate: true,
            core: false,
            rlimits: Vec::new(),
            out: PathBuf::from("results"),
            confidence: 0.99,
            exposure_floor: 100,
        }
    }
}
