//! The process-wide state: brought up by `cuInit`, torn down by an exit handler, useless after a fork.
#![allow(unsafe_code)] // registers handlers with the C library

use crate::bugs;
use crate::context::{Context, Primary};
use crate::device::Device;
use crate::error::{Answer, Code};
use crate::handle::{Pool, Table};
use crate::latency;
use crate::library::{Kernel, Library};
use crate::lock::Lock;
use crate::module::{Function, Module};
use crate::profile::Profile;
use crate::queue;
use crate::settings::Setting;
use crate::stream::{Event, Stream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// What `cuDriverGetVersion` answers: CUDA 13.2.
pub const VERSION: i32 = 13_020;
/// The version in the library's file name. It follows the real naming, so that what reads such names is exercised.
pub const FILE_VERSION: &str = "595.71.05";
/// The newest PTX that this driver accepts: that of CUDA 13.2.
pub const PTX_VERSION: (u16, u16) = (9, 2);

/// Everything that `cuInit` makes.
pub struct Driver {
    /// The device.
    pub device: Device,
    /// How images are judged.
    pub profile: Profile,
    /// Contexts by handle.
    pub contexts: Pool<Context>,
    /// Streams by handle.
    pub streams: Pool<Stream>,
    /// Events by handle.
    pub events: Pool<Event>,
    /// Modules by handle.
    pub modules: Table<Arc<Module>>,
    /// Functions by handle.
    pub functions: Table<Function>,
    /// Libraries by handle.
    pub libraries: Table<Arc<Library>>,
    /// Kernels of libraries by handle.
    pub kernels: Table<Kernel>,
    /// The primary context.
    pub primary: Lock<Primary>,
}

const NEW: u8 = 0;
const UP: u8 = 1;
const TORN_DOWN: u8 = 2;
const FORKED: u8 = 3;

static PHASE: AtomicU8 = AtomicU8::new(NEW);
static DRIVER: OnceLock<Result<Driver, Code>> = OnceLock::new();

/// Whether the exit handlers have run.
#[inline]
pub fn torn_down() -> bool {
    PHASE.load(Ordering::Acquire) == TORN_DOWN
}

/// The driver, if it can be used now: 3 before `cuInit` and in a forked child, 4 after the exit handlers.
#[inline]
pub fn driver() -> Answer<&'static Driver> {
    match PHASE.load(Ordering::Acquire) {
        UP => match DRIVER.get() {
            Some(Ok(driver)) => Ok(driver),
            _ => Err(Code::NOT_INITIALIZED),
        },
        TORN_DOWN => Err(Code::DEINITIALIZED),
        _ => Err(Code::NOT_INITIALIZED),
    }
}

/// The device, whatever state the driver is in.
pub fn device_if_any() -> Option<&'static Device> {
    DRIVER.get().and_then(|driver| driver.as_ref().ok()).map(|driver| &driver.device)
}

/// `cuInit`.
pub fn init() -> Answer {
    match PHASE.load(Ordering::Acquire) {
        UP => return Ok(()),
        TORN_DOWN => return Err(Code::DEINITIALIZED),
        FORKED => return Err(Code::NOT_INITIALIZED),
        _ => {}
    }
    let mut fresh = false;
    let made = DRIVER.get_or_init(|| {
        fresh = true;
        bring_up()
    });
    made.as_ref().map_err(|code| *code)?;
    if fresh {
        queue::start(&made.as_ref().map_err(|code| *code)?.device).map_err(|_| Code::OUT_OF_MEMORY)?;
        bugs::start_threads();
        // SAFETY: both handlers only store a number.
        unsafe {
            libc::atexit(tear_down);
            libc::pthread_atfork(None, None, Some(forked));
        }
        PHASE.store(UP, Ordering::Release);
    }
    // Another thread may be the one that brings it up.
    while PHASE.load(Ordering::Acquire) == NEW {
        std::thread::yield_now();
    }
    Ok(())
}

fn bring_up() -> Result<Driver, Code> {
    bugs::check().map_err(|text| refuse(&text))?;
    bugs::before_init()?;
    let profile = Profile::choose(Setting::from_env("CUDA_SIM_PROFILE").as_ref()).map_err(|text| refuse(&text))?;
    let wanted = Setting::from_env("CUDA_SIM_DEVICE");
    let device = Device::new(&profile, wanted.as_ref())
        .ok_or_else(|| refuse("CUDA_SIM_DEVICE is an architecture such as sm_120"))?;
    latency::adopt(&profile);
    Ok(Driver {
        device,
        profile,
        contexts: Pool::new(),
        streams: Pool::new(),
        events: Pool::new(),
        modules: Table::new(0x4d),
        functions: Table::new(0x46),
        libraries: Table::new(0x4c),
        kernels: Table::new(0x4b),
        primary: Lock::new(Primary::default()),
    })
}

/// A setting that makes no sense must not pass for a driver that works.
fn refuse(text: &str) -> Code {
    eprintln!("cuda-sim: {text}");
    Code::UNKNOWN
}

extern "C" fn tear_down() {
    PHASE.store(TORN_DOWN, Ordering::Release);
}

extern "C" fn forked() {
    PHASE.store(FORKED, Ordering::Release);
}
