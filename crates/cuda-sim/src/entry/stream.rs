//! Streams.

use super::{entries, put};
use crate::context::current;
use crate::error::{Answer, Code};
use crate::latency::{self, Call};
use crate::stream::{Lane, Stream};
use std::ffi::{c_int, c_uint};

unsafe fn create(out: *mut u64, flags: c_uint, priority: c_int) -> Answer {
    let (driver, context) = current()?;
    if out.is_null() || flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: by the C caller.
    unsafe { put(out, driver.streams.insert(Stream::new(context, flags, priority.clamp(-5, 0)))) }
}

/// The lane of a stream handle in the current context, or in the stream's own where it has one.
unsafe fn lane(handle: u64) -> Answer<(&'static crate::driver::Driver, Lane)> {
    let (driver, context) = current()?;
    // SAFETY: by the C caller.
    Ok((driver, unsafe { Lane::find(driver, &context, handle) }?))
}

entries! {
    cuStreamCreate = "cuStreamCreate" since 2000 (stream: *mut u64, flags: c_uint) {
        create(stream, flags, 0)
    }

    cuStreamCreateWithPriority = "cuStreamCreateWithPriority" since 5050 (stream: *mut u64, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    cuStreamSynchronize = "cuStreamSynchronize" since 2000 (stream: u64) {
        let (driver, lane) = lane(stream)?;
        latency::pay(Call::Sync);
        lane.synchronize(driver)
    }

    cuStreamQuery = "cuStreamQuery" since 2000 (stream: u64) {
        let (driver, lane) = lane(stream)?;
        lane.query(driver)
    }

    cuStreamDestroy_v2 = "cuStreamDestroy" since 4000 (stream: u64) {
        let driver = crate::driver::driver()?;
        if stream <= 2 {
            return Err(Code::INVALID_HANDLE);
        }
        drop(driver.streams.remove(stream));
        Ok(())
    }

    cuStreamGetFlags = "cuStreamGetFlags" since 5050 (stream: u64, flags: *mut c_uint) {
        let (driver, _) = lane(stream)?;
        put(flags, if stream <= 2 { 0 } else { driver.streams.get(stream).flags })
    }

    cuStreamGetPriority = "cuStreamGetPriority" since 5050 (stream: u64, priority: *mut c_int) {
        let (driver, _) = lane(stream)?;
        put(priority, if stream <= 2 { 0 } else { driver.streams.get(stream).priority })
    }

    cuStreamGetCtx = "cuStreamGetCtx" since 9020 (stream: u64, context: *mut u64) {
        lane(stream)?;
        put(context, crate::context::current_handle()?)
    }

    cuStreamWaitEvent = "cuStreamWaitEvent" since 3020 (stream: u64, event: u64, flags: c_uint) {
        let _ = flags;
        let (driver, _) = lane(stream)?;
        // The device works in one order, so whatever the event marks is done before what comes next.
        drop(driver.events.get(event));
        Ok(())
    }
}
