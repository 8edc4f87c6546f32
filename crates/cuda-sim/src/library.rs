//! Libraries and their kernels (`cuLibrary*`, `cuKernel*`): images without a context, loaded into each context that uses
//! them.

use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::lock::Lock;
use crate::module;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// A library.
pub struct Library {
    bytes: Box<[u8]>,
    /// The module of each context that used it: context number, module handle.
    modules: Lock<Vec<(u64, u64)>>,
    /// Handles of its kernels by name.
    kernels: Lock<Vec<(CString, u64)>>,
}

/// A kernel of a library.
pub struct Kernel {
    /// Whose.
    pub library: Arc<Library>,
    /// Its name.
    pub name: CString,
}

impl Library {
    /// A library of these bytes, loaded nowhere yet.
    pub fn new(bytes: &[u8]) -> Arc<Library> {
        Arc::new(Library { bytes: bytes.into(), modules: Lock::new(Vec::new()), kernels: Lock::new(Vec::new()) })
    }

    /// The library's module in a context, loaded where it is not yet; its handle.
    pub fn module(&self, driver: &'static Driver, context: &Arc<Context>) -> Answer<u64> {
        let mut modules = self.modules.lock();
        if let Some(found) = modules.iter().find(|entry| entry.0 == context.number) {
            return Ok(found.1);
        }
        let handle = module::load_bytes(driver, context, &self.bytes)?;
        modules.push((context.number, handle));
        Ok(handle)
    }

    /// The kernel of that name, which the image must have; its handle, the same for every call.
    pub fn kernel(self: &Arc<Self>, driver: &Driver, name: &CStr) -> Answer<u64> {
        let image = crate::image::intern(&self.bytes, &driver.device)?;
        if image.find(name).is_none() && driver.profile.strict_lookup {
            return Err(Code::NOT_FOUND);
        }
        let mut kernels = self.kernels.lock();
        if let Some(found) = kernels.iter().find(|entry| entry.0.as_c_str() == name) {
            return Ok(found.1);
        }
        let kernel = Kernel { library: Arc::clone(self), name: name.to_owned() };
        let handle = driver.kernels.insert(Box::new(kernel)).ok_or(Code::OUT_OF_MEMORY)?;
        kernels.push((name.to_owned(), handle));
        Ok(handle)
    }

    /// Names of the image's kernels.
    pub fn names(&self, driver: &Driver) -> Answer<Vec<CString>> {
        let image = crate::image::intern(&self.bytes, &driver.device)?;
        Ok(image.kernels.iter().map(|kernel| kernel.name.clone()).collect())
    }

    /// Unloads it from every context and ends its kernels.
    pub fn release(&self, driver: &'static Driver) {
        for (_, handle) in std::mem::take(&mut *self.modules.lock()) {
            // A module whose context is gone went with it.
            if let Some(module) = driver.modules.remove(handle) {
                module.context.modules.lock().remove(&handle);
                module.release(driver);
            }
        }
        for (_, handle) in std::mem::take(&mut *self.kernels.lock()) {
            driver.kernels.remove(handle);
        }
    }
}
