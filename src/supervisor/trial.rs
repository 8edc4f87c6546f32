//! One trial: one child of our own worker from its start to its end, with what was found in it.
//!
//! A trial runs wholly in the calling thread, which therefore must live as long as the trial. `life.rs` is the loop.

use super::interrupt::StopFlag;
use super::life::Life;
use super::tree::StartError;
use super::watchdog::Patience;
use crate::capture::Surroundings;
use crate::evidence::{EarlierSignal, Evidence};
use crate::journal::{Progress, Snapshot, Totals};
use crate::plan::{Observe, Order, ResourceLimit};
use crate::stats::Exposure;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What one trial is to be.
#[derive(Clone, Debug)]
pub struct TrialSpec {
    /// What the child is handed.
    pub order: Order,
    /// The image's bytes.
    pub image: Arc<[u8]>,
    /// The program to start, and its arguments.
    pub program: (PathBuf, Vec<OsString>),
    /// Added to the supervisor's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// Limits on the child's resources.
    pub rlimits: Vec<ResourceLimit>,
    /// A call that is open for this long is a hang.
    pub hang_after: Duration,
    /// The loop must begin within this time.
    pub begin_within: Duration,
    /// The child must be gone this long after its start.
    pub deadline: Duration,
    /// Bytes of stderr that are kept.
    pub stderr_tail: usize,
    /// How closely to watch.
    pub observe: Observe,
    /// Last calls kept of each thread.
    pub ring_capacity: usize,
    /// Where to write down every call, if anywhere.
    pub call_log: Option<PathBuf>,
    /// Last calls of each thread that evidence shows.
    pub last_calls: usize,
    /// Where to write a core of each fault, if anywhere.
    pub core_dir: Option<PathBuf>,
    /// What is known of the run's files; shared by its trials, so that each file is read once.
    pub around: Surroundings,
    /// The wish to end.
    pub stop: Arc<StopFlag>,
}

impl TrialSpec {
    /// A trial of our own worker, with patience and sizes that suit it.
    pub fn new(order: Order, image: Arc<[u8]>, stop: Arc<StopFlag>) -> TrialSpec {
        let hang_after = Duration::from_secs(10);
        let deadline = Duration::try_from_secs_f64(order.seconds).unwrap_or(Duration::from_secs(3600));
        TrialSpec {
            order,
            image,
            program: ("/proc/self/exe".into(), vec!["worker".into()]),
            env: Vec::new(),
            rlimits: Vec::new(),
            hang_after,
            begin_within: Duration::from_secs(60),
            deadline: deadline + Duration::from_secs(120),
            stderr_tail: 16 << 10,
            observe: Observe::default(),
            ring_capacity: 4096,
            call_log: None,
            last_calls: 64,
            core_dir: None,
            around: Surroundings::default(),
            stop,
        }
    }

    pub(super) fn patience(&self) -> Patience {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Patience {
            hang_after_ns: ns(self.hang_after),
            begin_within_ns: ns(self.begin_within),
            deadline_ns: ns(self.deadline),
        }
    }
}

/// Who is told of things while the child still stands there.
pub trait TrialObserver {
    /// The child was started and is about to be let go.
    fn started(&mut self, _pid: i32) {}

    /// Something that looks like a fault, before the child is resumed or killed: put it on disk now.
    fn fault(&mut self, _evidence: &Evidence) {}

    /// The evidence of this number was no fault after all: the program handled the signal and went on.
    fn withdrawn(&mut self, _number: u32) {}

    /// How far the child is, about ten times a second.
    fn tick(&mut self, _progress: &Progress) {}
}

/// Nobody.
impl TrialObserver for () {}

/// Why a child was killed by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// It hung.
    Hang,
    /// It did not begin in time.
    NeverBegan,
    /// It outlived its deadline.
    Overdue,
    /// It stayed stopped by a stop signal for as long as a hang may last.
    Stopped,
    /// It did not heed the request to stop.
    Unheeding,
    /// The run was ended at once.
    Ended,
}

impl fmt::Display for KillReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KillReason::Hang => "hung",
            KillReason::NeverBegan => "never began",
            KillReason::Overdue => "outlived its deadline",
            KillReason::Stopped => "stopped by a signal and not continued",
            KillReason::Unheeding => "did not heed the request to stop",
            KillReason::Ended => "the run was ended",
        })
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// It died of this signal.
    Signaled(i32),
    /// We killed it.
    Killed(KillReason),
}

/// When things happened, ns on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The child was started.
    pub spawned_ns: u64,
    /// Its loop began; none: it never did.
    pub began_ns: Option<u64>,
    /// Its end was seen.
    pub ended_ns: u64,
}

/// What came of a trial.
#[derive(Debug)]
pub struct TrialOutcome {
    /// The child's process id.
    pub pid: i32,
    /// How it ended.
    pub end: End,
    /// What was found: in the order in which it was taken. One with `follows` is no fault of its own.
    pub faults: Vec<Evidence>,
    /// Fatal-looking signals that the child handled.
    pub handled: Vec<EarlierSignal>,
    /// The journal at its end, with the worker's notes.
    pub journal: Snapshot,
    /// Totals of all threads.
    pub totals: Totals,
    /// How often its calls overlapped.
    pub exposure: Exposure,
    /// Its times.
    pub timings: Timings,
    /// Tail of its stderr.
    pub stderr_tail: String,
    /// Bytes that it wrote to stderr.
    pub stderr_bytes: u64,
    /// Processes that it started.
    pub descendants: u64,
    /// What could not be done or seen, one line each.
    pub soft_errors: Vec<String>,
}

/// A trial that could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// What the child needs could not be made.
    #[error("could not prepare a child: {0}")]
    Prepare(#[source] std::io::Error),
    /// A limit has a name that the system does not know.
    #[error("unknown resource limit `{0}`: use a name of setrlimit(2) in lower case, such as nofile")]
    UnknownLimit(String),
    /// A limit was refused.
    #[error("could not set the limit {name} of a child: {error}")]
    Limit {
        /// Its name.
        name: String,
        /// Why.
        error: std::io::Error,
    },
    /// The child could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The child could not be watched any longer; it was killed.
    #[error("could not go on watching a child: {0}")]
    Watch(#[source] std::io::Error),
}

/// Runs one trial. Nothing of the child or of what it started is left afterwards.
pub fn run(spec: TrialSpec, observer: &mut dyn TrialObserver) -> Result<TrialOutcome, TrialError> {
    let mut life = Life::begin(&spec, observer)?;
    let watched = life.watch();
    let outcome = life.end();
    watched.map(|()| outcome)
}
