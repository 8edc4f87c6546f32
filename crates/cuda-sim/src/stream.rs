//! Streams and events: marks in the device's order.
#![allow(unsafe_code)] // handles come from C programs

use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::queue::Work;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A stream.
pub struct Stream {
    /// Whose it is.
    pub context: Arc<Context>,
    /// The flags that it was made with.
    pub flags: u32,
    /// Its priority.
    pub priority: i32,
    last_work: AtomicU64,
}

impl Stream {
    /// A stream without work.
    pub fn new(context: Arc<Context>, flags: u32, priority: i32) -> Arc<Stream> {
        Arc::new(Stream { context, flags, priority, last_work: AtomicU64::new(0) })
    }
}

/// Where work goes: a stream of the program's, or the default stream.
pub struct Lane {
    stream: Option<Arc<Stream>>,
    context: Arc<Context>,
}

/// Handles of the default stream: none, legacy, per thread.
const DEFAULT: std::ops::RangeInclusive<u64> = 0..=2;

impl Lane {
    /// The lane that a stream handle names in a context.
    ///
    /// # Safety
    /// The handle must be live; a stale one is dereferenced.
    pub unsafe fn find(driver: &Driver, context: &Arc<Context>, handle: u64) -> Answer<Lane> {
        if DEFAULT.contains(&handle) {
            return Ok(Lane { stream: None, context: Arc::clone(context) });
        }
        // SAFETY: by the caller.
        let stream = unsafe { driver.streams.get(handle) };
        if !Arc::ptr_eq(&stream.context, context) {
            return Err(Code::INVALID_HANDLE);
        }
        Ok(Lane { stream: Some(stream), context: Arc::clone(context) })
    }

    /// Puts work at the lane's end.
    pub fn push(&self, driver: &Driver, work: Work) {
        let number = driver.device.queue.push(&self.context, work);
        if let Some(stream) = &self.stream {
            stream.last_work.store(number, Ordering::Release);
        }
    }

    /// Number of the newest work that a wait for this lane waits for: the default stream waits for all of its context.
    pub fn newest(&self) -> u64 {
        match &self.stream {
            Some(stream) => stream.last_work.load(Ordering::Acquire),
            None => self.context.last_work.load(Ordering::Acquire),
        }
    }

    /// Waits for the lane; the context's error, if any.
    pub fn synchronize(&self, driver: &Driver) -> Answer {
        driver.device.queue.wait(self.newest());
        self.context.sticky()
    }

    /// 600 while the lane has work to do.
    pub fn query(&self, driver: &Driver) -> Answer {
        if driver.device.queue.is_done(self.newest()) { self.context.sticky() } else { Err(Code::NOT_READY) }
    }
}

/// An event: a place in the device's order. Its time is that of the call that recorded it.
pub struct Event {
    mark: crate::lock::Lock<Option<(u64, Instant)>>,
}

impl Event {
    /// An event that was never recorded.
    pub fn new() -> Arc<Event> {
        Arc::new(Event { mark: crate::lock::Lock::new(None) })
    }

    /// Marks the end of a lane.
    pub fn record(&self, lane: &Lane) {
        *self.mark.lock() = Some((lane.newest(), Instant::now()));
    }

    /// Number of the work that it waits for; none where it was never recorded.
    pub fn number(&self) -> Option<u64> {
        self.mark.lock().map(|(number, _)| number)
    }

    /// Milliseconds between two recorded events.
    pub fn elapsed(start: &Event, end: &Event) -> Answer<f32> {
        let (Some((_, from)), Some((_, to))) = (*start.mark.lock(), *end.mark.lock()) else {
            return Err(Code::INVALID_HANDLE);
        };
        Ok(to.checked_duration_since(from).map_or_else(|| -(from - to).as_secs_f32(), |d| d.as_secs_f32()) * 1000.0)
    }
}
