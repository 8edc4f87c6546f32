//! A whole run: one child after the other until the time is over, each trial written down before the next begins.

use super::compare;
use super::ending::exit_code;
use super::gate::{self, Trust};
use super::interrupt::{self, StopFlag, StopLevel};
use super::outline::Outline;
use super::record::{self, Recorder};
use super::schedule::{Next, Schedule};
use super::trial::{self, TrialSpec};
use crate::capture::Surroundings;
use crate::exit::Exit;
use crate::journal::{FULL_RING, Note, NoteKind, Progress};
use crate::plan::{JournalKind, Order, SimSettings};
use crate::store::{self, RunData, RunEnd, RunFolder, RunHeader, StoreError, TrialEnd, TrialRecord};
use crate::vocabulary::Call;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Children in a row that could not begin before the run gives up.
const HOPELESS: usize = 3;

/// Why a run could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The results folder cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A child cannot be started or watched.
    #[error("cannot start a child: {0}")]
    Trial(#[from] trial::TrialError),
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The time was up, or a first Ctrl-C made it so.
    TimeUp,
    /// As many faults or children as were asked for, or nothing can be done here.
    Enough,
    /// A second Ctrl-C.
    Interrupted,
    /// SIGTERM, after saving.
    Terminated,
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Ended {
    /// Its records.
    pub data: RunData,
    /// Its folder.
    pub folder: PathBuf,
    /// Why it ended.
    pub ending: Ending,
    writer: RunFolder,
}

impl Ended {
    /// Writes something made from the records beside them.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_report(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        self.writer.write_report(name, bytes)
    }
}

/// Who is told how a run goes.
pub trait Audience {
    /// The child of this arm is this far; `elapsed` in seconds since the run's start.
    fn progress(&mut self, elapsed: f64, arm: &str, progress: &Progress);
    /// The same, asked for by a person (SIGUSR1).
    fn status_now(&mut self, elapsed: f64, arm: &str, progress: &Progress);
    /// A child is gone.
    fn trial(&mut self, elapsed: f64, arm: &str, trial: &TrialRecord);
}

/// Runs a plan. `images` holds the bytes for each arm.
///
/// # Errors
/// When nothing can be run or kept at all; whatever goes wrong in a child is a result, not an error.
pub fn run(header: RunHeader, images: Vec<Arc<[u8]>>, audience: &mut dyn Audience) -> Result<Ended, RunError> {
    let stop = StopFlag::new();
    interrupt::heed_signals(&stop).map_err(RunError::Signals)?;
    let plan = &header.plan;
    let named: Vec<(String, &[u8])> =
        header.images.iter().zip(&images).map(|(image, bytes)| (image.sha256.clone(), &**bytes)).collect();
    let folder = RunFolder::create(&plan.out, &header, &named)?;
    let mut run = Run {
        began: Instant::now(),
        schedule: Schedule::new(plan),
        recorder: Recorder::default(),
        around: surroundings(&header),
        warnings: Vec::new(),
        trials: Vec::new(),
        arch: None,
        unsaved: Vec::new(),
        tainted: false,
        folder,
        header,
        images,
        stop,
    };
    let ending = run.until_over(audience)?;
    Ok(run.end(ending))
}

/// What a child of the first arm has to say of a plan that does not fit its image: nothing is launched, nothing is kept.
pub fn first_words(header: RunHeader, images: Vec<Arc<[u8]>>) -> Option<String> {
    let next = Schedule::new(&header.plan).next(0.0)?;
    let spec = trial_spec(&header, &images, &next, StopFlag::new(), surroundings(&header));
    let outcome = trial::run(spec, &mut ()).ok()?;
    let asked = |note: &&Note| note.kind == NoteKind::Info && note.call == Some(Call::GetFunction);
    outcome.journal.notes.iter().find(asked).map(|note| note.text.clone())
}

/// The names of the files that matter in evidence.
fn surroundings(header: &RunHeader) -> Surroundings {
    let mut around = Surroundings::default();
    around.known.driver = header.driver.path.canonicalize().ok();
    around.known.worker = std::env::current_exe().ok();
    around
}

/// A run under way.
struct Run {
    began: Instant,
    schedule: Schedule,
    recorder: Recorder,
    around: Surroundings,
    stop: Arc<StopFlag>,
    folder: RunFolder,
    header: RunHeader,
    images: Vec<Arc<[u8]>>,
    warnings: Vec<String>,
    trials: Vec<Outline>,
    /// Architecture of the device, once a child has seen it.
    arch: Option<String>,
    /// Records that could not be written: kept here, so that the summary has them all the same.
    unsaved: Vec<TrialRecord>,
    /// The trust gate failed.
    tainted: bool,
}

impl Run {
    fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn until_over(&mut self, audience: &mut dyn Audience) -> Result<Ending, RunError> {
        loop {
            if let Some(ending) = self.over() {
                return Ok(ending);
            }
            let Some(next) = self.schedule.next(self.elapsed()) else { return Ok(Ending::TimeUp) };
            let trial = self.one_trial(&next, audience)?;
            audience.trial(self.elapsed(), &self.header.plan.arms[trial.arm].name, &trial);
            let lost = !matches!(trial.end, TrialEnd::Exited { .. });
            self.keep(trial);
            if lost && self.header.plan.gate && self.over().is_none() && !self.trusted(&next) {
                return Ok(Ending::Enough);
            }
        }
    }

    /// Puts a record on disk and keeps its outline.
    fn keep(&mut self, trial: TrialRecord) {
        self.trials.push(Outline::from(&trial));
        self.arch = self.arch.take().or_else(|| trial.device.as_ref().map(|device| device.arch.clone()));
        if let Err(e) = self.folder.append_trial(&trial) {
            self.warn(e.to_string());
            self.unsaved.push(trial);
        }
    }

    /// Whether host and device still do what they must after a child was lost.
    fn trusted(&mut self, lost: &Next) -> bool {
        let arch = self.arch.as_deref().or(self.header.images[lost.arm].arch.as_deref());
        let arch = arch.and_then(|name| name.strip_prefix("sm_")?.parse().ok());
        match gate::check(&self.spec(lost), arch) {
            Trust::Sound => true,
            Trust::NotTried(why) => {
                self.warn(why);
                true
            }
            // What the end of the run brought about says nothing about the host.
            Trust::Broken(_) if self.stop.level() != StopLevel::Run => true,
            Trust::Broken(why) => {
                self.warn(why);
                self.tainted = true;
                false
            }
        }
    }

    /// Says something once.
    fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    fn over(&self) -> Option<Ending> {
        match (self.stop.level(), self.stop.exit_code()) {
            (StopLevel::Run, _) => {}
            (StopLevel::Finish, _) => return Some(Ending::TimeUp),
            (StopLevel::Kill, Some(143)) => return Some(Ending::Terminated),
            (StopLevel::Kill, _) => return Some(Ending::Interrupted),
        }
        let plan = &self.header.plan;
        let faults: u64 = self.trials.iter().map(|t| u64::from(t.faults)).sum();
        let enough = plan.max_faults.is_some_and(|max| faults >= max)
            || plan.trials.is_some_and(|max| self.trials.len() as u64 >= max);
        let answered = self.schedule.between_blocks() && compare::all_answered(&compare::pairs(plan, &self.trials));
        (enough || answered || self.hopeless()).then_some(Ending::Enough)
    }

    /// Whether the last children did nothing, all for the same reason.
    fn hopeless(&self) -> bool {
        let tail = &self.trials[self.trials.len().saturating_sub(HOPELESS)..];
        tail.iter().any(|t| t.exit == Some(2)) || tail.len() == HOPELESS && tail.iter().all(|t| !t.worked)
    }

    fn one_trial(&mut self, next: &Next, audience: &mut dyn Audience) -> Result<TrialRecord, RunError> {
        let spec = self.spec(next);
        let arm = &self.header.plan.arms[next.arm];
        let (began, at, stop) = (self.began, self.elapsed(), self.stop.clone());
        let mut observer = record::Observer {
            recorder: &mut self.recorder,
            folder: &self.folder,
            tile: self.header.images[next.arm].host_object,
            workload: &arm.workload,
            tick: &mut |progress| {
                let elapsed = began.elapsed().as_secs_f64();
                audience.progress(elapsed, &arm.name, progress);
                if stop.take_status_wanted() {
                    audience.status_now(elapsed, &arm.name, progress);
                }
            },
            written: Vec::new(),
            soft_errors: Vec::new(),
        };
        let outcome = trial::run(spec, &mut observer)?;
        Ok(observer.record(next, at, outcome))
    }

    fn spec(&self, next: &Next) -> TrialSpec {
        let spec = trial_spec(&self.header, &self.images, next, self.stop.clone(), self.around.clone());
        let full = self.header.plan.journal == JournalKind::Full;
        TrialSpec {
            core_dir: self.header.plan.core.then(|| self.folder.path().join("faults")),
            ring_capacity: if full { FULL_RING } else { spec.ring_capacity },
            call_log: full.then(|| self.folder.calls(next.number)),
            ..spec
        }
    }

    fn end(mut self, ending: Ending) -> Ended {
        let seconds = self.elapsed();
        let found = exit_code(&self.header.plan, &self.trials);
        let exit = if self.tainted { found.or(Exit::Untrusted) } else { found };
        let end = RunEnd { exit_code: exit.code(), seconds, warnings: std::mem::take(&mut self.warnings) };
        let finished = self.folder.finish(&end);
        let folder = self.folder.path().to_owned();
        // The records are read back, so that what the summary says is what the folder holds.
        let mut data = store::read(&folder).unwrap_or_else(|e| RunData {
            header: self.header.clone(),
            trials: Vec::new(),
            end: None,
            soft_errors: vec![e.to_string()],
        });
        data.end = Some(end);
        data.trials.append(&mut self.unsaved);
        data.trials.sort_by_key(|trial| trial.number);
        data.soft_errors.extend(finished.err().map(|e| e.to_string()));
        Ended { data, folder, ending, writer: self.folder }
    }
}

/// What one child of a run is to be.
fn trial_spec(
    header: &RunHeader,
    images: &[Arc<[u8]>],
    next: &Next,
    stop: Arc<StopFlag>,
    around: Surroundings,
) -> TrialSpec {
    let plan = &header.plan;
    let arm = &plan.arms[next.arm];
    let order = Order {
        driver: header.driver.path.clone(),
        device: plan.device,
        image_path: arm.image.clone(),
        workload: arm.workload.clone(),
        seconds: next.seconds,
        seed: next.seed,
        child: next.number,
        record: true,
        alternate: None,
    };
    let hang_after = Duration::try_from_secs_f64(plan.hang_after).unwrap_or(Duration::MAX);
    TrialSpec {
        env: sim_environment(&plan.sim, next.number),
        rlimits: plan.rlimits.clone(),
        hang_after,
        // A driver may take its time to come up; three times as long as any other call.
        begin_within: hang_after.saturating_mul(3),
        observe: plan.observe,
        around,
        ..TrialSpec::new(order, images[next.arm].clone(), stop)
    }
}

/// What a child's simulated driver is told; a real one takes no notice.
fn sim_environment(sim: &SimSettings, child: u64) -> Vec<(OsString, OsString)> {
    let words = [("CUDA_SIM_BUG", &sim.bug), ("CUDA_SIM_PROFILE", &sim.profile), ("CUDA_SIM_DEVICE", &sim.device)];
    let said = words.into_iter().filter_map(|(name, value)| Some((name.into(), value.as_ref()?.into())));
    said.chain([("CUDA_SIM_CHILD".into(), child.to_string().into())]).collect()
}
