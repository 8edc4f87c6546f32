//! Contexts.

use super::{entries, put};
use crate::context::{self, current};
use crate::error::{Answer, Code};
use crate::latency::{self, Call};
use std::ffi::{c_int, c_uint, c_void};

unsafe fn create(out: *mut u64, flags: c_uint, device: c_int) -> Answer {
    crate::driver::driver()?;
    if out.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if device != 0 {
        return Err(Code::INVALID_DEVICE);
    }
    let handle = context::create(flags)?;
    // SAFETY: by the C caller.
    unsafe { put(out, handle) }
}

entries! {
    cuCtxCreate_v2 = "cuCtxCreate" since 3020 (context: *mut u64, flags: c_uint, device: c_int) {
        create(context, flags, device)
    }

    cuCtxCreate_v3 = "cuCtxCreate" since 11040 (context: *mut u64, affinity: *mut c_void, count: c_int, flags: c_uint, device: c_int) {
        if count != 0 && !affinity.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        create(context, flags, device)
    }

    cuCtxCreate_v4 = "cuCtxCreate" since 12050 (context: *mut u64, parameters: *mut c_void, flags: c_uint, device: c_int) {
        let _ = parameters;
        create(context, flags, device)
    }

    cuCtxDestroy_v2 = "cuCtxDestroy" since 4000 (context: u64) {
        context::destroy(context)
    }

    cuCtxPushCurrent_v2 = "cuCtxPushCurrent" since 4000 (context: u64) {
        context::push(context)
    }

    cuCtxPopCurrent_v2 = "cuCtxPopCurrent" since 4000 (context: *mut u64) {
        let popped = context::pop()?;
        if context.is_null() { Ok(()) } else { put(context, popped) }
    }

    cuCtxSetCurrent = "cuCtxSetCurrent" since 4000 (context: u64) {
        context::set_current(context)
    }

    cuCtxGetCurrent = "cuCtxGetCurrent" since 4000 (context: *mut u64) {
        put(context, context::current_handle()?)
    }

    cuCtxGetDevice = "cuCtxGetDevice" since 2000 (device: *mut c_int) {
        current()?;
        put(device, 0)
    }

    cuCtxGetFlags = "cuCtxGetFlags" since 7000 (flags: *mut c_uint) {
        put(flags, current()?.1.flags)
    }

    cuCtxGetId = "cuCtxGetId" since 12000 (context: u64, id: *mut u64) {
        let (driver, now) = current()?;
        put(id, if context == 0 { now.number } else { driver.contexts.get(context).number })
    }

    cuCtxSynchronize = "cuCtxSynchronize" since 2000 () {
        let (driver, context) = current()?;
        latency::pay(Call::Sync);
        context.synchronize(driver)
    }

    cuCtxGetApiVersion = "cuCtxGetApiVersion" since 3020 (context: u64, version: *mut c_uint) {
        let driver = crate::driver::driver()?;
        if context == 0 {
            current()?;
        } else {
            drop(driver.contexts.get(context));
        }
        put(version, 3020)
    }

    cuCtxGetStreamPriorityRange = "cuCtxGetStreamPriorityRange" since 5050 (least: *mut c_int, greatest: *mut c_int) {
        current()?;
        if !least.is_null() {
            put(least, 0)?;
        }
        if !greatest.is_null() {
            put(greatest, -5)?;
        }
        Ok(())
    }

    cuCtxGetLimit = "cuCtxGetLimit" since 3010 (value: *mut usize, limit: c_int) {
        current()?;
        put(value, *LIMITS.get(limit as usize).ok_or(Code::INVALID_VALUE)?)
    }

    cuCtxSetLimit = "cuCtxSetLimit" since 3010 (limit: c_int, value: usize) {
        let _ = value;
        current()?;
        LIMITS.get(limit as usize).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    cuCtxGetCacheConfig = "cuCtxGetCacheConfig" since 3020 (config: *mut c_int) {
        current()?;
        put(config, 0)
    }

    cuCtxSetCacheConfig = "cuCtxSetCacheConfig" since 3020 (config: c_int) {
        let _ = config;
        current().map(|_| ())
    }
}

/// Stack, printf buffer, heap, nesting, pending launches, and L2's fetch size: the defaults of a recent driver.
const LIMITS: [usize; 6] = [1024, 1 << 20, 8 << 20, 2, 2048, 128];
