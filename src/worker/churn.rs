//! The hot loop: load, look up, launch, synchronise, unload, except one module in N that is kept.
//!
//! It calls the driver's table directly, so that the sequence of calls is exactly the plan's. Between the first round and the
//! last it allocates nothing, locks nothing (but the lock that a plan asks for) and prints nothing; what goes wrong is written
//! down in cold paths. The journal's chained form is used wherever nothing happens between two calls.

use super::api::Api;
use super::crew::{Crew, Job, Kit};
use super::kept::Kept;
use super::lock::{Access, Lock};
use super::pace::Pace;
use super::trouble::{Failed, Trouble};
use super::verify::Wrong;
use crate::journal::{Entered, NoteKind, ThreadWriter};
use crate::plan::SyncPlace;
use crate::vocabulary::Call;
use crossbeam::sync::WaitGroup;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// How a thread's loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Time is up.
    InTime,
    /// Nothing comes back from what happened: the driver answers one error for ever.
    Broken,
    /// No thread's first round went well, and this is what stopped this one's.
    NeverBegan(Failed),
}

/// The loop through this family of entry points.
pub(super) struct Loop<A: Api>(pub A);

impl<A: Api> Job for Loop<A> {
    fn run(&self, crew: &Crew<'_>, index: usize, pen: &mut ThreadWriter, kit: &mut Kit, first: WaitGroup) -> Ended {
        Churn::new(crew, self.0, index, pen, kit).run(first)
    }
}

/// A call that was entered, if the next may be chained to it.
type Open = Option<Entered>;

/// One thread's loop.
struct Churn<'a, A: Api> {
    crew: &'a Crew<'a>,
    api: A,
    index: usize,
    pen: &'a mut ThreadWriter,
    kit: &'a mut Kit,
    kept: Kept,
    trouble: Trouble,
    pace: Option<Pace>,
    /// Serial of the next module: unique in the child without any thread asking another.
    serial: u64,
    round: u64,
    wrong: u32,
}

impl<'a, A: Api> Churn<'a, A> {
    /// Notes of wrong results that one thread writes down; more are counted in the journal.
    const WRONG_NOTES: u32 = 8;

    /// A loop that has not begun.
    fn new(crew: &'a Crew<'a>, api: A, index: usize, pen: &'a mut ThreadWriter, kit: &'a mut Kit) -> Self {
        Churn {
            crew,
            api,
            index,
            pen,
            kit,
            kept: Kept::new(),
            trouble: Trouble::new(),
            pace: crew.order.alternate.map(Pace::new),
            serial: index as u64 + 1,
            round: 0,
            wrong: 0,
        }
    }

    /// Goes round until time is up. `first` counts the threads whose first round is not yet over.
    fn run(mut self, first: WaitGroup) -> Ended {
        if self.crew.is_over() {
            return Ended::InTime;
        }
        match self.next_round() {
            Ok(()) => {
                self.crew.succeeded.store(true, Relaxed);
                drop(first);
            }
            Err(failed) => {
                // The others decide what this failure means: if none gets further, the worker could not begin.
                first.wait();
                if !self.crew.succeeded.load(Relaxed) && !crate::driver::codes::is_sticky(failed.code) {
                    return Ended::NeverBegan(failed);
                }
                if self.fail(failed) {
                    return Ended::Broken;
                }
            }
        }
        while !self.crew.is_over() {
            match self.next_round() {
                Ok(()) => self.trouble.forget(),
                Err(failed) => {
                    if self.fail(failed) {
                        return Ended::Broken;
                    }
                }
            }
        }
        if let Some(pace) = &self.pace {
            pace.print();
        }
        Ended::InTime
    }

    /// One round, and what belongs to its count.
    #[inline(always)]
    fn next_round(&mut self) -> Result<(), Failed> {
        let keep = self.crew.order.workload.keep;
        let keep = keep != 0 && self.round % keep == keep - 1;
        let check = self.kit.checker.as_ref().is_some_and(|checker| checker.is_due(self.round));
        let done = if check { self.checked_round(keep) } else { self.round::<false>(keep) };
        self.pen.round_done();
        self.round += 1;
        self.serial += self.crew.order.workload.threads as u64;
        if let Some(pace) = &mut self.pace {
            pace.round(self.pen);
        }
        done
    }

    /// A round whose result is looked at.
    #[cold]
    fn checked_round(&mut self, keep: bool) -> Result<(), Failed> {
        self.round::<true>(keep)
    }

    #[inline(always)]
    fn round<const CHECK: bool>(&mut self, keep: bool) -> Result<(), Failed> {
        let (api, serial) = (self.api, self.serial);
        let image = match &mut self.kit.unique {
            Some(copy) => copy.next(),
            None => self.crew.image_for(self.index, self.round),
        };
        let mut handle: *mut c_void = null_mut();
        // SAFETY: the image's bytes live as long as the crew, and a zero byte stands behind them.
        let open = self.call(None, A::LOAD, Access::Use, || unsafe { api.load(&mut handle, image) })?;
        let tally = &self.crew.tallies[self.index];
        tally.loads.store(tally.loads.load(Relaxed) + 1, Relaxed);
        tally.live.store(tally.live.load(Relaxed) + 1, Relaxed);
        let used = self.use_module::<CHECK>(open, handle, serial);
        if keep && used.is_ok() {
            self.close(used?);
            self.kept.push(handle);
            self.pen.kept(self.kept.count());
            return Ok(());
        }
        let (open, failed) = match used {
            Ok(open) => (open, None),
            Err(failed) if crate::driver::codes::is_sticky(failed.code) => return Err(failed),
            Err(failed) => (None, Some(failed)),
        };
        // SAFETY: the handle was loaded above and is forgotten here.
        let unloaded = self.call(open, A::UNLOAD, Access::Unload, || unsafe { api.unload(handle) });
        let unloaded = unloaded.map(|open| {
            self.close(open);
            let tally = &self.crew.tallies[self.index];
            tally.live.store(tally.live.load(Relaxed) - 1, Relaxed);
        });
        failed.map_or(unloaded, Err)
    }

    /// Looks the kernel up, launches it, waits for it.
    #[inline(always)]
    fn use_module<const CHECK: bool>(&mut self, open: Open, handle: *mut c_void, serial: u64) -> Result<Open, Failed> {
        let (api, crew, entries) = (self.api, self.crew, self.crew.stage.entries);
        let mut found: *mut c_void = null_mut();
        // SAFETY: the handle was loaded by this round and is not unloaded yet.
        let look_up = || unsafe { api.look_up(&mut found, handle, &crew.target.kernel) };
        let mut open = self.call(open, A::LOOK_UP, Access::Use, look_up)?;
        let mut function = found;
        if let Some(resolve) = A::RESOLVE {
            // SAFETY: what was looked up belongs to that handle.
            open = self.call(open, resolve, Access::Use, || unsafe { api.resolve(&mut function, found) })?;
        }
        let mut began = None;
        if CHECK {
            self.close(open.take());
            began = Some(Instant::now());
            self.poison()?;
        }
        let (grid, block) = (crew.target.grid, crew.target.block);
        let arguments = self.kit.arguments.as_mut_ptr();
        // SAFETY: the function belongs to a module that is loaded; the arguments were laid out by what the image says about
        // them, and their buffers are this thread's own. Or the plan says otherwise, which is what it is for.
        open = self.call(open, Call::Launch, Access::Use, || unsafe {
            (entries.cuLaunchKernel)(
                function,
                grid.0,
                grid.1,
                grid.2,
                block.0,
                block.1,
                block.2,
                0,
                null_mut(),
                arguments,
                null_mut(),
            )
        })?;
        if CHECK || crew.order.workload.sync == SyncPlace::BeforeUnload {
            // SAFETY: a context is current in this thread.
            open = self.call(open, Call::Sync, Access::Other, || unsafe { (entries.cuCtxSynchronize)() })?;
        }
        if let Some(began) = began {
            self.close(open.take());
            self.look(serial, began)?;
        }
        Ok(open)
    }

    /// One driver call: chained to the one before where no lock stands between them.
    #[inline(always)]
    fn call(&mut self, open: Open, call: Call, access: Access, step: impl FnOnce() -> i32) -> Result<Open, Failed> {
        let module = self.serial;
        if !matches!(self.crew.lock, Lock::None) {
            self.close(open);
            return self.locked(call, access, step);
        }
        let open = match open {
            Some(open) => self.pen.next(open, 0, call, module),
            None => self.pen.enter(call, module),
        };
        let code = step();
        if code != 0 {
            self.pen.leave(open, code);
            return Err(Failed { call, code, module });
        }
        Ok(Some(open))
    }

    /// One driver call under the plan's lock. Waiting for the lock is no part of the call.
    #[inline(never)]
    fn locked(&mut self, call: Call, access: Access, step: impl FnOnce() -> i32) -> Result<Open, Failed> {
        let held = self.crew.lock.take(access);
        let open = self.pen.enter(call, self.serial);
        let code = step();
        self.pen.leave(open, code);
        drop(held);
        if code == 0 { Ok(None) } else { Err(Failed { call, code, module: self.serial }) }
    }

    #[inline(always)]
    fn close(&mut self, open: Open) {
        if let Some(open) = open {
            self.pen.leave(open, 0);
        }
    }

    #[cold]
    fn poison(&mut self) -> Result<(), Failed> {
        let entries = self.crew.stage.entries;
        self.kit.checker.as_ref().map_or(Ok(()), |checker| checker.poison(entries, self.pen))
    }

    #[cold]
    fn look(&mut self, serial: u64, began: Instant) -> Result<(), Failed> {
        let Some(checker) = &mut self.kit.checker else { return Ok(()) };
        let looked = checker.look(serial, self.crew.stage.entries, self.pen);
        checker.looked(self.round, began.elapsed());
        if let Some(wrong) = looked? {
            self.note_wrong(serial, wrong);
        }
        Ok(())
    }

    fn note_wrong(&mut self, serial: u64, wrong: Wrong) {
        if self.wrong < Self::WRONG_NOTES {
            let (_, live) = self.crew.modules();
            let (thread, call) = (Some(self.index), Some(Call::Launch));
            self.crew.journal.note(NoteKind::WrongResult, thread, call, 0, serial, live, &wrong.describe());
        }
        self.wrong += 1;
    }

    /// Writes a failure down and cools off. True: there is no going on.
    #[cold]
    fn fail(&mut self, failed: Failed) -> bool {
        let broken = self.crew.report(self.index, &mut self.trouble, &failed);
        let pause = self.trouble.pause();
        if !broken && !pause.is_zero() && !self.crew.is_over() {
            std::thread::sleep(pause);
        }
        broken
    }
}
