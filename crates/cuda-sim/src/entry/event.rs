//! Events.

use super::{entries, put};
use crate::context::current;
use crate::error::Code;
use crate::stream::{Event, Lane};
use std::ffi::c_uint;

entries! {
    cuEventCreate = "cuEventCreate" since 2000 (event: *mut u64, flags: c_uint) {
        let _ = flags;
        let (driver, _) = current()?;
        if event.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(event, driver.events.insert(Event::new()))
    }

    cuEventRecord = "cuEventRecord" since 2000 (event: u64, stream: u64) {
        let (driver, context) = current()?;
        let lane = Lane::find(driver, &context, stream)?;
        driver.events.get(event).record(&lane);
        Ok(())
    }

    cuEventQuery = "cuEventQuery" since 2000 (event: u64) {
        let (driver, _) = current()?;
        match driver.events.get(event).number() {
            Some(number) if !driver.device.queue.is_done(number) => Err(Code::NOT_READY),
            _ => Ok(()),
        }
    }

    cuEventSynchronize = "cuEventSynchronize" since 2000 (event: u64) {
        let (driver, context) = current()?;
        if let Some(number) = driver.events.get(event).number() {
            driver.device.queue.wait(number);
        }
        context.sticky()
    }

    cuEventElapsedTime = "cuEventElapsedTime" since 2000 (milliseconds: *mut f32, start: u64, end: u64) {
        let (driver, _) = current()?;
        put(milliseconds, Event::elapsed(&driver.events.get(start), &driver.events.get(end))?)
    }

    cuEventElapsedTime_v2 = "cuEventElapsedTime" since 12080 (milliseconds: *mut f32, start: u64, end: u64) {
        let (driver, _) = current()?;
        put(milliseconds, Event::elapsed(&driver.events.get(start), &driver.events.get(end))?)
    }

    cuEventDestroy_v2 = "cuEventDestroy" since 4000 (event: u64) {
        let driver = crate::driver::driver()?;
        drop(driver.events.remove(event));
        Ok(())
    }
}
