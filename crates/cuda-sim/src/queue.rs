//! What the device has to do, in the order in which it was asked, and the one thread that does it.
//!
//! Streams are ordered because the device does one thing after another; a wait is a wait for a number in that order.
#![allow(unsafe_code)] // copies between memory of the device and memory that the program named

use crate::context::Context;
use crate::device::Device;
use crate::error::{Answer, Code};
use crate::kernels;
use crate::lock::Lock;
use crate::module::Module;
use crate::wait::Signal;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One thing to do.
pub enum Work {
    /// Run a kernel of a module with these parameters.
    Launch {
        /// Whose kernel.
        module: Arc<Module>,
        /// Which.
        kernel: usize,
        /// The parameters as the kernel sees them.
        parameters: Box<[u8]>,
    },
    /// Copy from the host's memory.
    CopyIn {
        /// Where to.
        device: u64,
        /// Where from; read when its turn comes.
        host: usize,
        /// How much.
        len: u64,
    },
    /// Copy to the host's memory.
    CopyOut {
        /// Where to; written when its turn comes.
        host: usize,
        /// Where from.
        device: u64,
        /// How much.
        len: u64,
    },
    /// Fill memory with a pattern.
    Fill {
        /// Where.
        device: u64,
        /// How much.
        len: u64,
        /// With what, over and over.
        pattern: [u8; 4],
    },
    /// Call a function of the program.
    HostCall {
        /// Which.
        function: unsafe extern "C" fn(*mut c_void),
        /// With what.
        data: usize,
    },
}

struct Item {
    number: u64,
    context: Arc<Context>,
    work: Work,
}

/// The device's queue.
pub struct Queue {
    items: Lock<VecDeque<Item>>,
    accepted: AtomicU64,
    done: AtomicU64,
    arrived: Signal,
    finished: Signal,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            items: Lock::new(VecDeque::new()),
            accepted: AtomicU64::new(0),
            done: AtomicU64::new(0),
            arrived: Signal::default(),
            finished: Signal::default(),
        }
    }
}

impl Queue {
    /// Puts work at the end; its number in the device's order.
    pub fn push(&self, context: &Arc<Context>, work: Work) -> u64 {
        let mut items = self.items.lock();
        let number = self.accepted.load(Ordering::Relaxed) + 1;
        context.last_work.store(number, Ordering::Release);
        items.push_back(Item { number, context: Arc::clone(context), work });
        self.accepted.store(number, Ordering::Release);
        drop(items);
        self.arrived.ring();
        number
    }

    /// Whether the work with this number is done.
    pub fn is_done(&self, number: u64) -> bool {
        self.done.load(Ordering::Acquire) >= number
    }

    /// Waits until the work with this number is done.
    pub fn wait(&self, number: u64) {
        if !self.is_done(number) {
            self.finished.wait_until(|| self.is_done(number));
        }
    }

    fn take(&self) -> Item {
        loop {
            if let Some(item) = self.items.lock().pop_front() {
                return item;
            }
            let done = self.done.load(Ordering::Relaxed);
            self.arrived.wait_until(|| self.accepted.load(Ordering::Acquire) > done);
        }
    }

    fn serve(&self, device: &Device) {
        let Item { number, context, work } = self.take();
        if context.sticky().is_ok()
            && let Err(code) = run(device, &work)
        {
            context.fail(code);
        }
        if let Work::Launch { module, .. } = &work {
            module.in_flight.fetch_sub(1, Ordering::Release);
        }
        // References are given back first: who waits for this number may count on them being gone.
        drop((work, context));
        self.done.store(number, Ordering::Release);
        self.finished.ring();
    }
}

fn run(device: &Device, work: &Work) -> Answer {
    match work {
        Work::Launch { module, kernel, parameters } => kernels::run(device, module, *kernel, parameters),
        Work::CopyIn { device: to, host, len } => {
            let span = device.memory.resolve(*to, *len).ok_or(Code::ILLEGAL_ADDRESS)?;
            // SAFETY: the span holds `len` bytes; the program vouches for its own memory until the copy is done.
            unsafe { std::ptr::copy_nonoverlapping(*host as *const u8, span.host, *len as usize) };
            Ok(())
        }
        Work::CopyOut { host, device: from, len } => {
            let span = device.memory.resolve(*from, *len).ok_or(Code::ILLEGAL_ADDRESS)?;
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(span.host, *host as *mut u8, *len as usize) };
            Ok(())
        }
        Work::Fill { device: at, len, pattern } => kernels::fill(device, *at, *len, *pattern),
        Work::HostCall { function, data } => {
            // SAFETY: the program asked for this call.
            unsafe { function(*data as *mut c_void) };
            Ok(())
        }
    }
}

/// Starts the thread that serves the device, with all signals blocked, as a library's own thread has to be.
pub fn start(device: &'static Device) -> std::io::Result<()> {
    crate::threads::spawn("sim-device-0", move || {
        loop {
            device.queue.serve(device);
        }
    })
}
