//! Libraries and kernels.

use super::{entries, put};
use crate::context::current;
use crate::driver::{Driver, driver};
use crate::error::{Answer, Code};
use crate::image;
use crate::latency::{self, Call};
use crate::library::Library;
use crate::module;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

fn add(driver: &'static Driver, bytes: &[u8]) -> Answer<u64> {
    crate::bugs::before_image(bytes)?;
    let image = image::intern(bytes, &driver.device)?;
    if !image.suits(driver.device.arch) {
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    latency::pay(Call::Load);
    let library = Library::new(bytes);
    // Loaded at once where there is a context, as with eager loading.
    if let Ok((driver, context)) = current() {
        library.module(driver, &context)?;
    }
    driver.libraries.insert(Box::new(library)).ok_or(Code::OUT_OF_MEMORY)
}

unsafe fn find(driver: &'static Driver, handle: u64) -> Answer<&'static Arc<Library>> {
    // SAFETY: by the C caller.
    unsafe { driver.libraries.get(handle) }.ok_or(Code::INVALID_HANDLE)
}

entries! {
    cuLibraryLoadData = "cuLibraryLoadData" since 12000 (
        library: *mut u64, code: *const c_void, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    ) {
        let _ = (options, values, count, library_options, library_values, library_count);
        let driver = driver()?;
        if library.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(library, add(driver, image::extent(code.cast())?)?)
    }

    cuLibraryLoadFromFile = "cuLibraryLoadFromFile" since 12000 (
        library: *mut u64, path: *const c_char, options: *mut c_int, values: *mut *mut c_void, count: c_uint,
        library_options: *mut c_int, library_values: *mut *mut c_void, library_count: c_uint,
    ) {
        let _ = (options, values, count, library_options, library_values, library_count);
        let driver = driver()?;
        if library.is_null() || path.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let bytes = std::fs::read(OsStr::from_bytes(CStr::from_ptr(path).to_bytes())).map_err(|_| Code::FILE_NOT_FOUND)?;
        put(library, add(driver, &bytes)?)
    }

    cuLibraryUnload = "cuLibraryUnload" since 12000 (library: u64) {
        let driver = driver()?;
        latency::pay(Call::Unload);
        driver.libraries.remove(library).ok_or(Code::INVALID_HANDLE)?.release(driver);
        Ok(())
    }

    cuLibraryGetKernel = "cuLibraryGetKernel" since 12000 (kernel: *mut u64, library: u64, name: *const c_char) {
        let driver = driver()?;
        if kernel.is_null() || name.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        latency::pay(Call::GetFunction);
        put(kernel, find(driver, library)?.kernel(driver, CStr::from_ptr(name))?)
    }

    cuLibraryGetKernelCount = "cuLibraryGetKernelCount" since 12040 (count: *mut c_uint, library: u64) {
        let driver = driver()?;
        put(count, find(driver, library)?.names(driver)?.len() as c_uint)
    }

    cuLibraryEnumerateKernels = "cuLibraryEnumerateKernels" since 12040 (kernels: *mut u64, count: c_uint, library: u64) {
        let driver = driver()?;
        let library = find(driver, library)?;
        for (at, name) in library.names(driver)?.iter().take(count as usize).enumerate() {
            put(kernels.add(at), library.kernel(driver, name)?)?;
        }
        Ok(())
    }

    cuLibraryGetModule = "cuLibraryGetModule" since 12000 (module: *mut u64, library: u64) {
        let (driver, context) = current()?;
        put(module, find(driver, library)?.module(driver, &context)?)
    }

    cuKernelGetFunction = "cuKernelGetFunction" since 12000 (function: *mut u64, kernel: u64) {
        let (driver, context) = current()?;
        let found = driver.kernels.get(kernel).ok_or(Code::INVALID_HANDLE)?;
        let module = found.library.module(driver, &context)?;
        put(function, module::get_function(driver, module, &found.name)?)
    }

    cuKernelGetName = "cuKernelGetName" since 12030 (name: *mut *const c_char, kernel: u64) {
        put(name, driver()?.kernels.get(kernel).ok_or(Code::INVALID_HANDLE)?.name.as_ptr())
    }

    cuKernelGetLibrary = "cuKernelGetLibrary" since 12050 (library: *mut u64, kernel: u64) {
        let _ = library;
        driver()?.kernels.get(kernel).ok_or(Code::INVALID_HANDLE)?;
        Err(Code::NOT_SUPPORTED)
    }
}
