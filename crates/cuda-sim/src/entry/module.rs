//! Modules.

use super::{entries, put};
use crate::context::current;
use crate::error::{Answer, Code};
use crate::latency::{self, Call};
use crate::module;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;

unsafe fn load(out: *mut u64, image: *const c_void) -> Answer {
    let (driver, context) = current()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    latency::pay(Call::Load);
    // SAFETY: by the C caller.
    unsafe { put(out, module::load(driver, &context, image.cast())?) }
}

entries! {
    cuModuleLoadData = "cuModuleLoadData" since 2000 (module: *mut u64, image: *const c_void) {
        load(module, image)
    }

    cuModuleLoadDataEx = "cuModuleLoadDataEx" since 2010 (
        module: *mut u64, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    ) {
        let _ = (count, options, values);
        load(module, image)
    }

    cuModuleLoadFatBinary = "cuModuleLoadFatBinary" since 2000 (module: *mut u64, image: *const c_void) {
        load(module, image)
    }

    cuModuleLoad = "cuModuleLoad" since 2000 (module: *mut u64, path: *const c_char) {
        let (driver, context) = current()?;
        if module.is_null() || path.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let bytes = std::fs::read(OsStr::from_bytes(CStr::from_ptr(path).to_bytes())).map_err(|_| Code::FILE_NOT_FOUND)?;
        latency::pay(Call::Load);
        put(module, module::load_bytes(driver, &context, &bytes)?)
    }

    cuModuleUnload = "cuModuleUnload" since 2000 (module: u64) {
        let (driver, context) = current()?;
        latency::pay(Call::Unload);
        module::unload(driver, &context, module)
    }

    cuModuleGetFunction = "cuModuleGetFunction" since 2000 (function: *mut u64, module: u64, name: *const c_char) {
        let (driver, _) = current()?;
        if function.is_null() || name.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        latency::pay(Call::GetFunction);
        put(function, module::get_function(driver, module, CStr::from_ptr(name))?)
    }

    cuModuleGetFunctionCount = "cuModuleGetFunctionCount" since 12040 (count: *mut c_uint, module: u64) {
        let (driver, _) = current()?;
        put(count, driver.modules.get(module).ok_or(Code::INVALID_HANDLE)?.image.kernels.len() as c_uint)
    }

    cuModuleGetGlobal_v2 = "cuModuleGetGlobal" since 3020 (at: *mut u64, length: *mut usize, module: u64, name: *const c_char) {
        let _ = (at, length, name);
        let (driver, _) = current()?;
        driver.modules.get(module).ok_or(Code::INVALID_HANDLE)?;
        Err(Code::NOT_FOUND)
    }

    cuModuleGetLoadingMode = "cuModuleGetLoadingMode" since 11070 (mode: *mut c_int) {
        const EAGER: c_int = 1;
        crate::driver::driver()?;
        put(mode, EAGER)
    }
}
