//! From an order to its end: fits plan and image, brings the driver up, starts the threads together, keeps the time, and takes
//! everything down again.

use super::api::{LibraryApi, ModuleApi};
use super::churn::{Ended, Loop};
use super::crew::{Crew, Job, Kit, Target};
use super::image::Image;
use super::lock::Lock;
use super::script::Script;
use super::setup::{self, Context, Stage};
use super::target::Misfit;
use super::trouble::{Failure, direct};
use crate::driver::library::version_text;
use crate::journal::{JournalWriter, NoteKind, ThreadWriter};
use crate::plan::{ApiStyle, Order, Verify};
use crate::vocabulary::Call;
use crossbeam::channel::{self, RecvTimeoutError, Sender};
use crossbeam::sync::WaitGroup;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Longest order, so that no clock overflows: thirty years.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// Does the order.
///
/// # Errors
/// Where the plan does not fit, or the worker could not begin.
pub(super) fn run(order: &Order, images: &[Image], journal: JournalWriter) -> Result<(), Failure> {
    let Some((image, others)) = images.split_first() else { return Err(Failure::plan("no image")) };
    let mut pen = journal.main_thread();
    pen.begin();
    pen.set_recording(order.record);
    let workload = &order.workload;
    if workload.threads == 0 || workload.threads > journal.threads() {
        let room = journal.threads();
        return Err(Failure::plan(format!("{} threads, and the journal has room for {room}", workload.threads)));
    }
    let target = match Target::new(workload, image) {
        Ok(target) => target,
        Err(Misfit::Other(text)) => return Err(Failure::plan(text)),
        Err(Misfit::Absent { kernel, text }) => {
            let failure = Failure::plan(text);
            ask_leniency(order, image, journal, &mut pen, &kernel);
            return Err(failure);
        }
    };
    for other in others {
        target.also_fits(workload, other).map_err(Failure::plan)?;
    }
    let script = (!workload.script.is_empty()).then(|| Script::new(workload, &target.layout)).transpose();
    let script = script.map_err(|text| Failure::plan(format!("script: {text}")))?;
    if workload.verify != Verify::Off && !target.layout.adds {
        let name = target.kernel.to_string_lossy();
        let text = format!("results are not checked: what {name} computes on these arguments is not known");
        journal.note(NoteKind::Info, None, Some(Call::Verify), 0, 0, 0, &text);
    }
    let (stage, context) = setup::begin(order, image, &journal, &mut pen)?;
    let crew = Crew {
        order,
        image,
        images,
        target: &target,
        stage: &stage,
        binding: context.as_ref().map(Context::binding),
        journal,
        lock: Lock::new(workload.lock),
        stop: AtomicBool::new(false),
        succeeded: AtomicBool::new(false),
        tallies: (0..workload.threads).map(|_| Default::default()).collect(),
    };
    let broken = match (script, workload.api) {
        (Some(script), _) => work(&crew, &script),
        (None, ApiStyle::Module) => work(&crew, &Loop(ModuleApi(stage.entries))),
        (None, ApiStyle::Library) => {
            let api = LibraryApi::new(stage.entries).map_err(|symbol| missing(order, &stage, symbol))?;
            work(&crew, &Loop(api))
        }
    }?;
    drop(crew);
    match context {
        Some(context) if broken => std::mem::forget(context),
        Some(context) => context.give_back(&mut pen),
        None => {}
    }
    Ok(())
}

/// The plan wants entry points that this driver lacks.
fn missing(order: &Order, stage: &Stage, symbol: &str) -> Failure {
    let mut cuda = 0;
    // SAFETY: the pointer is valid for one int.
    let known = unsafe { (stage.entries.cuDriverGetVersion)(&mut cuda) } == 0;
    let cuda = version_text(known.then_some(cuda));
    let driver = setup::version_note(order);
    let text =
        format!("the driver (CUDA {cuda}{driver}) has no entry point {symbol}: use --api module, or a newer driver");
    Failure::setup(None, 0, text)
}

/// Starts the threads, keeps the time. True: the driver is in a state that nothing comes back from.
fn work(crew: &Crew<'_>, job: &impl Job) -> Result<bool, Failure> {
    let threads = crew.order.workload.threads;
    let (ready, first) = (WaitGroup::new(), WaitGroup::new());
    let (done, ends) = channel::bounded(threads);
    let all: Vec<Result<Ended, Failure>> = crossbeam::thread::scope(|scope| {
        for index in 0..threads {
            let (ready, first, done) = (ready.clone(), first.clone(), done.clone());
            let body = move |_: &_| thread(crew, job, index, ready, first, &done);
            scope.builder().name(format!("stress-{index}")).spawn(body).expect("a thread could not be started");
        }
        drop((first, done));
        ready.wait();
        crew.journal.set_began();
        let time = Duration::try_from_secs_f64(crew.order.seconds).unwrap_or(LONGEST).min(LONGEST);
        let deadline = Instant::now() + time;
        let mut all = Vec::with_capacity(threads);
        loop {
            match ends.recv_deadline(deadline) {
                Ok(end) => all.push(end),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return all,
            }
        }
        crew.stop.store(true, Relaxed);
        all.extend(ends.iter());
        all
    })
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    judge(crew, all)
}

/// One thread's life.
fn thread(
    crew: &Crew<'_>,
    job: &impl Job,
    index: usize,
    ready: WaitGroup,
    first: WaitGroup,
    done: &Sender<Result<Ended, Failure>>,
) {
    let mut pen: ThreadWriter = crew.journal.thread(index);
    pen.begin();
    pen.set_recording(crew.order.record);
    let kit = Kit::new(crew, index, &mut pen);
    if kit.is_err() {
        crew.stop.store(true, Relaxed);
    }
    ready.wait();
    let end = kit.map(|mut kit| {
        let end = job.run(crew, index, &mut pen, &mut kit, first);
        if end == Ended::Broken {
            kit.abandon()
        } else {
            kit.give_back(&mut pen)
        }
        end
    });
    // The main thread waits for all ends before it goes: it is there to listen.
    let _ = done.send(end);
}

/// What the ends of all threads mean together.
fn judge(crew: &Crew<'_>, ends: Vec<Result<Ended, Failure>>) -> Result<bool, Failure> {
    let mut broken = false;
    let mut never = None;
    for end in ends {
        match end? {
            Ended::InTime => {}
            Ended::Broken => broken = true,
            Ended::NeverBegan(failed) => {
                never.get_or_insert(failed);
            }
        }
    }
    never.map_or(Ok(broken), |failed| Err(crew.could_not_begin(failed)))
}

/// The plan's kernel is not in the image. What a driver makes of that is worth a note: some accept the look-up and fail later.
fn ask_leniency(order: &Order, image: &Image, journal: JournalWriter, pen: &mut ThreadWriter, kernel: &CStr) {
    let Ok((stage, context)) = setup::begin(order, image, &journal, pen) else { return };
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: the image's bytes are whole and a zero byte stands behind them; a context is current where one was made.
    let load = || unsafe { (stage.entries.cuModuleLoadData)(&mut module, image.as_ptr()) };
    if direct(pen, Call::Load, 1, load).is_ok() {
        // SAFETY: the module was loaded just now; the name ends in NUL.
        let look_up = || unsafe { (stage.entries.cuModuleGetFunction)(&mut function, module, kernel.as_ptr()) };
        if direct(pen, Call::GetFunction, 1, look_up).is_ok() {
            let text = "driver accepted a lookup of an absent symbol";
            journal.note(NoteKind::Info, None, Some(Call::GetFunction), 0, 1, 1, text);
        }
    }
    if let Some(context) = context {
        context.give_back(pen);
    }
}
