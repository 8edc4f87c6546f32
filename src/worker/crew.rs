//! What the threads of a worker share, and how one thread gets ready.

use super::arguments::{Arguments, Layout};
use super::churn::Ended;
use super::image::Image;
use super::lock::Lock;
use super::setup::{self, Binding, Buffers, Context, Stage};
use super::trouble::{Failed, Failure, Trouble};
use super::verify::{self, Checker};
use crate::driver::codes;
use crate::journal::{JournalWriter, NoteKind, ThreadWriter};
use crate::plan::{Dim3, Order, Spread, Verify};
use crate::vocabulary::Call;
use crossbeam::sync::WaitGroup;
use crossbeam::utils::CachePadded;
use std::ffi::{CString, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The kernel that is launched, and how.
pub(super) struct Target {
    /// Its name.
    pub kernel: CString,
    /// Its arguments.
    pub layout: Layout,
    /// Grid, in blocks.
    pub grid: Dim3,
    /// Block, in threads.
    pub block: Dim3,
}

/// What one thread says about its modules, for the words of a note.
#[derive(Default)]
pub(super) struct Tally {
    /// Loads that succeeded.
    pub loads: AtomicU64,
    /// Modules loaded now.
    pub live: AtomicU64,
}

/// What all threads share.
pub(super) struct Crew<'a> {
    /// The order.
    pub order: &'a Order,
    /// The image; of several, the first.
    pub image: &'a Image,
    /// All images that threads load: one, or those of a bundle.
    pub images: &'a [Image],
    /// What to launch.
    pub target: &'a Target,
    /// The driver.
    pub stage: &'a Stage,
    /// The shared context, if it is shared.
    pub binding: Option<Binding<'a>>,
    /// The journal.
    pub journal: JournalWriter,
    /// What keeps calls apart.
    pub lock: Lock,
    /// Time is up, or a thread met an error that ends them all.
    pub stop: AtomicBool,
    /// A first round went well somewhere.
    pub succeeded: AtomicBool,
    /// One a thread.
    pub tallies: Box<[CachePadded<Tally>]>,
}

/// What the threads do, once they are ready.
pub(super) trait Job: Sync {
    /// One thread's part. `first` counts the threads whose first step is not yet over.
    fn run(&self, crew: &Crew<'_>, index: usize, pen: &mut ThreadWriter, kit: &mut Kit, first: WaitGroup) -> Ended;
}

impl Crew<'_> {
    /// Whether to leave the loop: two loads.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.stop.load(Relaxed) || self.journal.stop_requested()
    }

    /// What a thread loads in this round.
    #[inline]
    pub fn image_for(&self, thread: usize, round: u64) -> *const c_void {
        let among = self.images.len();
        let index = match self.order.workload.spread {
            _ if among < 2 => 0,
            Spread::Same => 0,
            Spread::PerThread => thread % among,
            Spread::Random => (verify::mix(self.order.seed ^ (thread as u64) << 48 ^ round) % among as u64) as usize,
        };
        self.images[index].as_ptr()
    }

    /// Loads that succeeded, and modules that are loaded now, in this process.
    pub fn modules(&self) -> (u64, u64) {
        let sum = |field: fn(&Tally) -> &AtomicU64| self.tallies.iter().map(|tally| field(tally).load(Relaxed)).sum();
        (sum(|tally| &tally.loads), sum(|tally| &tally.live))
    }

    /// Why the image's architecture does not fit the device, where it does not.
    pub fn architecture_note(&self) -> Option<String> {
        let (image, device) = (self.image.arch?, self.stage.arch?);
        let fits = if self.image.tile { image == device } else { image / 10 == device / 10 && image <= device };
        let rule = if self.image.tile { ", tile images need an exact match" } else { "" };
        (!fits).then(|| format!("image sm_{image}, device sm_{device}{rule}"))
    }

    /// A failed call in words.
    pub fn describe(&self, failed: &Failed) -> String {
        let (loads, live) = self.modules();
        let text = failed.describe();
        match failed.call {
            Call::Load | Call::LibraryLoad if loads > 0 => {
                format!("{text}; same image loaded {loads} times before in this process; {live} live modules")
            }
            _ => text,
        }
    }

    /// No thread of this process ever got further than `failed`: what that means.
    pub fn could_not_begin(&self, failed: Failed) -> Failure {
        let path = self.image.path.display();
        let name = self.target.kernel.to_string_lossy();
        match (failed.call, failed.code) {
            (Call::Launch, _) => Failure {
                call: Some(failed.call),
                code: failed.code,
                ..Failure::plan(format!(
                    "{path}: the driver refuses this launch of {name} (grid {}, block {}): {}",
                    self.target.grid,
                    self.target.block,
                    failed.describe()
                ))
            },
            (Call::GetFunction | Call::LibraryGetKernel, 500) => Failure {
                call: Some(failed.call),
                code: failed.code,
                ..Failure::plan(format!("{path}: the driver finds no kernel {name} in it: {}", failed.describe()))
            },
            (call, code) => {
                let looking_up = matches!(call, Call::GetFunction | Call::LibraryGetKernel | Call::KernelGetFunction);
                let step = if looking_up { "kernel look-up" } else { "module load" };
                let mut failure = setup::refused(self.order, self.image, step, failed);
                if let (codes::NO_BINARY_FOR_GPU, Some(note)) = (code, self.architecture_note()) {
                    failure.text = format!("{} answered {}: {note}", call.entry(), codes::describe(code));
                }
                // The driver calls the image itself broken.
                if matches!(code, 200 | 218) {
                    failure.kind = NoteKind::BadPlan;
                    failure.text = format!("{path}: {}", failure.text);
                }
                failure
            }
        }
    }

    /// Notes a failed call, if it is the first of its kind in this thread; an error that nothing comes back from ends all
    /// threads. True in that case.
    pub fn report(&self, thread: usize, trouble: &mut Trouble, failed: &Failed) -> bool {
        let sticky = codes::is_sticky(failed.code);
        if trouble.is_new(failed) {
            let (_, live) = self.modules();
            let text = self.describe(failed);
            let Failed { call, code, module } = *failed;
            self.journal.note(NoteKind::ApiError, Some(thread), Some(call), code, module, live, &text);
        }
        if sticky {
            self.stop.store(true, Relaxed);
        }
        sticky
    }
}

/// What a thread has of its own.
pub(super) struct Kit {
    /// Its context, where each thread has its own.
    context: Option<Context>,
    /// Its device memory.
    pub buffers: Buffers,
    /// Its kernel arguments.
    pub arguments: Arguments,
    /// Looks at results, where they are known and wanted.
    pub checker: Option<Checker>,
    /// Its own copy of the image, where no two loads are to have the same content.
    pub unique: Option<UniqueCopy>,
}

/// A copy of an image with one byte that is another at every load.
pub(super) struct UniqueCopy {
    bytes: Box<[u8]>,
    at: usize,
    step: u8,
}

impl UniqueCopy {
    /// A copy for one of `threads` threads: their values differ as well, as long as 256 suffice.
    fn new(image: &Image, at: u64, thread: usize, threads: usize) -> Option<UniqueCopy> {
        let mut bytes: Box<[u8]> = image.bytes().into();
        let at = usize::try_from(at).ok().filter(|&at| at < bytes.len())?;
        bytes[at] = bytes[at].wrapping_add(thread as u8);
        Some(UniqueCopy { bytes, at, step: threads.clamp(1, 255) as u8 })
    }

    /// The copy with its next value.
    #[inline]
    pub fn next(&mut self) -> *const c_void {
        self.bytes[self.at] = self.bytes[self.at].wrapping_add(self.step);
        self.bytes.as_ptr().cast()
    }
}

impl Kit {
    /// Binds a context to this thread, allocates and fills its device memory.
    pub fn new(crew: &Crew<'_>, index: usize, pen: &mut ThreadWriter) -> Result<Kit, Failure> {
        let explain = |step: &str, failed| setup::refused(crew.order, crew.image, step, failed);
        let context = match &crew.binding {
            Some(binding) => {
                binding.bind(pen).map_err(|failed| explain("context binding", failed))?;
                None
            }
            None => {
                let made = setup::create(crew.stage.device, pen);
                Some(made.map_err(|failed| explain(setup::CONTEXT_CREATION, failed))?)
            }
        };
        let (layout, entries) = (&crew.target.layout, crew.stage.entries);
        let buffers = Buffers::allocate(&layout.buffers, entries, pen);
        let buffers = buffers.map_err(|failed| explain("device memory", failed))?;
        let addresses = buffers.addresses();
        let how = crew.order.workload.verify;
        let seed = verify::mix(crew.order.seed).wrapping_add(index as u64);
        let checker = (layout.adds && how != Verify::Off)
            .then(|| Checker::new(how, &addresses, verify::mix(seed), entries, pen))
            .transpose()
            .map_err(|failed| explain("copying inputs", failed))?;
        let workload = &crew.order.workload;
        let unique = workload.unique_byte.and_then(|at| UniqueCopy::new(crew.image, at, index, workload.threads));
        Ok(Kit { context, arguments: layout.bind(&addresses), buffers, checker, unique })
    }

    /// Gives everything back, in the order in which it must go.
    pub fn give_back(self, pen: &mut ThreadWriter) {
        self.buffers.free(pen);
        if let Some(context) = self.context {
            context.give_back(pen);
        }
    }

    /// Leaves everything as it is: the driver answers nothing but one error from now on.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_loads_of_two_threads_have_the_same_byte_for_a_while() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/cubins/ptx/add.sm_120.cubin");
        let bytes = std::fs::read(path).unwrap();
        let image = Image::read(bytes.clone(), path.as_ref()).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for thread in 0..2 {
            let mut copy = UniqueCopy::new(&image, 0x580, thread, 2).unwrap();
            for _ in 0..100 {
                copy.next();
                assert!(seen.insert(copy.bytes[0x580]));
                assert!(copy.bytes[..0x580] == bytes[..0x580] && copy.bytes[0x581..bytes.len()] == bytes[0x581..]);
            }
        }
        assert!(UniqueCopy::new(&image, u64::MAX, 0, 2).is_none());
    }
}
