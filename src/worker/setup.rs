//! Brings the driver up through `cust`: initialisation, device, contexts, device memory. And takes it all down again.
//!
//! Every step is journaled, so that a child that dies or hangs before its loop shows where. A `CudaError` is never displayed:
//! that would ask the driver for a text, and panic when it refuses.

use super::image::Image;
use super::trouble::{Failed, Failure, direct};
use crate::driver::codes::{self, Situation};
use crate::driver::entries::{self, CuDevicePtr, Entries};
use crate::driver::{self, Identity, OpenError};
use crate::journal::{JournalWriter, NoteKind, ThreadWriter};
use crate::plan::{ContextKind, DriverKind, Order};
use crate::vocabulary::Call;
use cust::context::legacy;
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaResult;
use cust::memory::DeviceBuffer;
use std::ffi::c_char;

/// The driver, brought up on one device.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// Its entry points.
    pub entries: &'static Entries,
    /// The device.
    pub device: Device,
    /// The device's architecture: 120 for sm_120.
    pub arch: Option<u32>,
}

/// A context that is given back by [`Context::give_back`] and not by being dropped, so that the journal has the call.
pub(super) enum Context {
    /// From `cuCtxCreate_v2`.
    Created(legacy::Context),
    /// The device's primary context.
    Primary(cust::context::Context),
}

/// Opens the library, initialises it, opens the device, and makes the context that all threads share (none: each makes its
/// own).
pub(super) fn begin(
    order: &Order,
    image: &Image,
    journal: &JournalWriter,
    pen: &mut ThreadWriter,
) -> Result<(Stage, Option<Context>), Failure> {
    let entries = driver::open(&order.driver).map_err(|error| match error {
        OpenError::Missing { .. } => Failure::setup(None, 0, format!("{error}{}", version_note(order))),
        other => Failure::setup(None, 0, other.to_string()),
    })?;
    let explain = |failed, step: &str| refused(order, image, step, failed);
    journaled(pen, Call::Init, || cust::init(cust::CudaFlags::empty()))
        .map_err(|failed| explain(failed, "driver start"))?;
    let step = format!("device {}", order.device);
    // A negative number becomes one that no device has.
    let number = order.device.cast_unsigned();
    let device =
        journaled(pen, Call::DeviceGet, || Device::get_device(number)).map_err(|failed| explain(failed, &step))?;
    let arch = arch(device, pen);
    describe(entries, device, arch, journal, pen);
    let shared = match order.workload.context {
        ContextKind::Created => Some(create(device, pen).map_err(|failed| explain(failed, CONTEXT_CREATION))?),
        ContextKind::Primary => {
            let retained = journaled(pen, Call::PrimaryCtxRetain, || cust::context::Context::new(device));
            Some(Context::Primary(retained.map_err(|failed| explain(failed, CONTEXT_CREATION))?))
        }
        ContextKind::PerThread => None,
    };
    Ok((Stage { entries, device, arch }, shared))
}

/// What a failure to make a context is called.
pub(super) const CONTEXT_CREATION: &str = "context creation";

/// Makes a context with `cuCtxCreate_v2`; it is current in this thread then.
pub(super) fn create(device: Device, pen: &mut ThreadWriter) -> Result<Context, Failed> {
    let flags = legacy::ContextFlags::SCHED_AUTO;
    journaled(pen, Call::CtxCreate, || legacy::Context::create_and_push(flags, device)).map(Context::Created)
}

/// A context as the threads that share it see it.
pub(super) enum Binding<'a> {
    /// From `cuCtxCreate_v2`.
    Created(legacy::UnownedContext),
    /// The device's primary context.
    Primary(&'a cust::context::Context),
}

impl Binding<'_> {
    /// Makes the context current in the calling thread.
    pub fn bind(&self, pen: &mut ThreadWriter) -> Result<(), Failed> {
        journaled(pen, Call::CtxSetCurrent, || match self {
            Binding::Created(context) => legacy::CurrentContext::set_current(context),
            Binding::Primary(context) => cust::context::CurrentContext::set_current(*context),
        })
    }
}

impl Context {
    /// For the threads that share it.
    pub fn binding(&self) -> Binding<'_> {
        match self {
            Context::Created(context) => Binding::Created(context.get_unowned()),
            Context::Primary(context) => Binding::Primary(context),
        }
    }

    /// Gives it back to the driver. What the driver answers stands in the journal.
    pub fn give_back(self, pen: &mut ThreadWriter) {
        match self {
            Context::Created(context) => {
                let _ = journaled(pen, Call::CtxDestroy, || forgetting(legacy::Context::drop(context)));
            }
            Context::Primary(context) => {
                let _ = journaled(pen, Call::PrimaryCtxRelease, || forgetting(cust::context::Context::drop(context)));
            }
        }
    }
}

/// Device memory of one thread.
pub(super) struct Buffers(Vec<DeviceBuffer<u8>>);

impl Buffers {
    /// Allocates buffers of these sizes, zeroed.
    pub fn allocate(sizes: &[usize], entries: &Entries, pen: &mut ThreadWriter) -> Result<Buffers, Failed> {
        let mut buffers = Buffers(Vec::with_capacity(sizes.len()));
        for &size in sizes {
            // SAFETY: the memory is filled below, before anyone reads it.
            buffers.0.push(journaled(pen, Call::MemAlloc, || unsafe { DeviceBuffer::uninitialized(size) })?);
        }
        for (&address, &size) in buffers.addresses().iter().zip(sizes) {
            // SAFETY: the address and size of the buffer that was allocated above.
            direct(pen, Call::Memset, 0, || unsafe { (entries.cuMemsetD8_v2)(address, 0, size) })?;
        }
        Ok(buffers)
    }

    /// Their addresses.
    pub fn addresses(&self) -> Vec<CuDevicePtr> {
        self.0.iter().map(|buffer| buffer.as_device_ptr().as_raw()).collect()
    }

    /// Frees them. What the driver answers stands in the journal.
    pub fn free(self, pen: &mut ThreadWriter) {
        for buffer in self.0 {
            let _ = journaled(pen, Call::MemFree, || forgetting(DeviceBuffer::drop(buffer)));
        }
    }
}

/// cust gives what could not be dropped back together with the error; dropping that would call the driver once more.
fn forgetting<T>(dropped: cust::error::DropResult<T>) -> CudaResult<()> {
    dropped.map_err(|(error, undropped)| {
        std::mem::forget(undropped);
        error
    })
}

/// One step through `cust`, journaled under `call` with the driver's own code.
pub(super) fn journaled<T>(
    pen: &mut ThreadWriter,
    call: Call,
    step: impl FnOnce() -> CudaResult<T>,
) -> Result<T, Failed> {
    entries::forget_code();
    let open = pen.enter(call, 0);
    let answer = step();
    let code = match &answer {
        Ok(_) => 0,
        // cust has errors of its own, for which it asks no driver.
        Err(error) if entries::last_code() == 0 => *error as i32,
        Err(_) => entries::last_code(),
    };
    pen.leave(open, code);
    answer.map_err(|_| Failed { call, code, module: 0 })
}

/// The device's architecture, where the driver tells it.
fn arch(device: Device, pen: &mut ThreadWriter) -> Option<u32> {
    let mut read = |attribute| journaled(pen, Call::DeviceGet, || device.get_attribute(attribute)).ok();
    let major = read(DeviceAttribute::ComputeCapabilityMajor)?;
    let minor = read(DeviceAttribute::ComputeCapabilityMinor)?;
    u32::try_from(major.checked_mul(10)?.checked_add(minor)?).ok()
}

/// Writes down for the supervisor, which never asks a driver itself, what it runs on. Two notes of kind `Info`: under
/// `DriverGetVersion` the code is the CUDA version (13020 for 13.2); under `DeviceGet` the code is the architecture (120 for
/// sm_120, 0 where it is not known) and the text the device's name.
fn describe(entries: &Entries, device: Device, arch: Option<u32>, journal: &JournalWriter, pen: &mut ThreadWriter) {
    let mut cuda = 0;
    // SAFETY: the pointer is valid for one int.
    let version = direct(pen, Call::DriverGetVersion, 0, || unsafe { (entries.cuDriverGetVersion)(&mut cuda) });
    if version.is_ok() {
        let text = format!("CUDA {}", driver::library::version_text(Some(cuda)));
        journal.note(NoteKind::Info, None, Some(Call::DriverGetVersion), cuda, 0, 0, &text);
    }
    let mut name = [0u8; 256];
    let (start, length) = (name.as_mut_ptr().cast::<c_char>(), name.len() as i32 - 1);
    // SAFETY: the buffer is one byte longer than it is said to be, so that its text ends whatever the driver writes.
    let named =
        direct(pen, Call::DeviceGet, 0, || unsafe { (entries.cuDeviceGetName)(start, length, device.as_raw()) });
    if named.is_ok() {
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&name[..end]);
        let code = arch.map_or(0, u32::cast_signed);
        journal.note(NoteKind::Info, None, Some(Call::DeviceGet), code, 0, 0, &text);
    }
}

/// Why the worker cannot begin: the step, the driver's word, and what to do.
pub(super) fn refused(order: &Order, image: &Image, step: &str, failed: Failed) -> Failure {
    let name = codes::name(failed.code).map_or_else(|| format!("error {}", failed.code), String::from);
    let text = format!("{name} at {step} ({} answered {})", failed.call.entry(), failed.code);
    let identity = Identity::read(&order.driver).ok();
    let driver_version = identity.as_ref().and_then(|identity| identity.version.as_deref());
    let simulated = identity.as_ref().is_some_and(|identity| identity.kind == DriverKind::Simulated);
    let hint = codes::hint(failed.code, Situation { driver_version, tile: image.tile, simulated });
    let text = hint.map_or_else(|| text.clone(), |hint| format!("{text}: {hint}"));
    Failure::setup(Some(failed.call), failed.code, text)
}

/// The driver's version by its file, for a message about what it lacks.
pub(super) fn version_note(order: &Order) -> String {
    let identity = Identity::read(&order.driver).ok();
    identity.and_then(|identity| identity.version).map(|version| format!(", driver {version}")).unwrap_or_default()
}
