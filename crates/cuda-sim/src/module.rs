//! Modules and functions.
#![allow(unsafe_code)] // handles come from C programs

use crate::bugs;
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::host_object::HostObject;
use crate::image::{self, Image};
use crate::lock::Lock;
use crate::profile::ArchCheck;
use crate::wait;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A loaded image.
pub struct Module {
    /// What was loaded.
    pub image: Arc<Image>,
    /// Where.
    pub context: Arc<Context>,
    /// Its host object, where the image is Tile.
    pub host: Option<Arc<HostObject>>,
    /// Its launches that are not done yet.
    pub in_flight: AtomicU32,
    /// What planted bugs keep per module.
    pub bugs: bugs::PerModule,
    /// Handle of each kernel's function, once it was asked for.
    functions: Box<[AtomicU64]>,
    /// Handles of functions that are not in the image (lenient look-up).
    absent: Lock<Vec<u64>>,
}

/// A function: a kernel of a module.
pub struct Function {
    /// Whose.
    pub module: Arc<Module>,
    /// Which; none where the image has no such kernel and the profile does not mind.
    pub kernel: Option<usize>,
}

/// Loads the image at `at` into a context; the module's handle.
///
/// # Safety
/// `at` must point to a whole image.
pub unsafe fn load(driver: &'static Driver, context: &Arc<Context>, at: *const u8) -> Answer<u64> {
    // SAFETY: by the caller.
    let bytes = unsafe { image::extent(at) }?;
    load_bytes(driver, context, bytes)
}

/// Loads an image; the module's handle.
pub fn load_bytes(driver: &'static Driver, context: &Arc<Context>, bytes: &[u8]) -> Answer<u64> {
    bugs::before_image(bytes)?;
    let image = image::intern(bytes, &driver.device)?;
    if driver.profile.arch_check == ArchCheck::Load && !image.suits(driver.device.arch) {
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    bugs::before_load(context, &image)?;
    driver.device.memory.charge(image.device_bytes)?;
    let module = make(context, &image).inspect_err(|_| driver.device.memory.discharge(image.device_bytes))?;
    bugs::after_load(&module);
    let handle = driver.modules.insert(Box::new(Arc::clone(&module)));
    let Some(handle) = handle else {
        module.release(driver);
        return Err(Code::OUT_OF_MEMORY);
    };
    context.modules.lock().insert(handle);
    Ok(handle)
}

fn make(context: &Arc<Context>, image: &Arc<Image>) -> Answer<Arc<Module>> {
    let keep = bugs::PerModule::default();
    let host = match &image.host {
        Some(template) => {
            let make = || HostObject::load(template, image, context.number).map(Arc::new);
            Some(bugs::host_object(context, image, &keep, make)?)
        }
        None => None,
    };
    Ok(Arc::new(Module {
        image: Arc::clone(image),
        context: Arc::clone(context),
        host,
        in_flight: AtomicU32::new(0),
        bugs: keep,
        functions: image.kernels.iter().map(|_| AtomicU64::new(0)).collect(),
        absent: Lock::new(Vec::new()),
    }))
}

/// Unloads a module of a context.
pub fn unload(driver: &'static Driver, context: &Context, handle: u64) -> Answer {
    // SAFETY: the module is removed below, by this thread; a program that unloads it twice at once breaks the rule.
    let module = unsafe { driver.modules.get(handle) }.ok_or(Code::INVALID_HANDLE)?;
    if module.context.number != context.number {
        return Err(Code::INVALID_HANDLE);
    }
    let module = driver.modules.remove(handle).ok_or(Code::INVALID_HANDLE)?;
    context.modules.lock().remove(&handle);
    module.release(driver);
    Ok(())
}

/// The function of a kernel by name; its handle.
pub fn get_function(driver: &Driver, handle: u64, name: &CStr) -> Answer<u64> {
    // SAFETY: a program that looks up while it unloads breaks the rule.
    let module = unsafe { driver.modules.get(handle) }.ok_or(Code::INVALID_HANDLE)?;
    module.function(driver, name)
}

impl Module {
    /// The function of a kernel by name; its handle, the same for every call.
    pub fn function(self: &Arc<Self>, driver: &Driver, name: &CStr) -> Answer<u64> {
        if !self.image.suits(driver.device.arch) {
            return Err(Code::NO_BINARY_FOR_GPU);
        }
        let Some(kernel) = self.image.find(name) else {
            if driver.profile.strict_lookup {
                return Err(Code::NOT_FOUND);
            }
            let handle = self.new_function(driver, None)?;
            self.absent.lock().push(handle);
            return Ok(handle);
        };
        let known = self.functions[kernel].load(Ordering::Acquire);
        if known != 0 {
            return Ok(known);
        }
        let handle = self.new_function(driver, Some(kernel))?;
        match self.functions[kernel].compare_exchange(0, handle, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(handle),
            Err(first) => {
                driver.functions.remove(handle);
                Ok(first)
            }
        }
    }

    fn new_function(self: &Arc<Self>, driver: &Driver, kernel: Option<usize>) -> Answer<u64> {
        let function = Function { module: Arc::clone(self), kernel };
        let handle = driver.functions.insert(Box::new(function)).ok_or(Code::OUT_OF_MEMORY)?;
        bugs::after_function(&self.context, handle);
        Ok(handle)
    }

    /// Gives everything back that the module holds, once its launches are done.
    pub fn release(&self, driver: &Driver) {
        while !wait::spin(|| self.in_flight.load(Ordering::Acquire) == 0) {
            wait::poll(Duration::from_secs(1), || self.in_flight.load(Ordering::Acquire) == 0);
        }
        bugs::before_release(self);
        let absent = std::mem::take(&mut *self.absent.lock());
        for handle in self.functions.iter().map(|f| f.swap(0, Ordering::AcqRel)).chain(absent) {
            if handle != 0 {
                bugs::before_function_ends(&self.context, handle);
                driver.functions.remove(handle);
            }
        }
        if let Some(host) = &self.host {
            bugs::unmap(self, host);
        }
        driver.device.memory.discharge(self.image.device_bytes);
    }
}
