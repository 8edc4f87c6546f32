//! Memory.

use super::{entries, put};
use crate::context::{Context, current};
use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::latency::{self, Call};
use crate::queue::Work;
use crate::stream::Lane;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// Checks the device side of a transfer that the calling thread does at once, and waits for the context's work first, as
/// the default stream would.
fn ready(length: usize, addresses: &[u64]) -> Answer<(&'static Driver, Arc<Context>)> {
    let (driver, context) = current()?;
    if addresses.iter().any(|&at| length != 0 && driver.device.memory.resolve(at, length as u64).is_none()) {
        return Err(Code::INVALID_VALUE);
    }
    context.synchronize(driver)?;
    latency::pay(Call::Copy);
    Ok((driver, context))
}

/// Puts a transfer on a stream.
unsafe fn later(stream: u64, length: usize, at: u64, work: impl FnOnce() -> Work) -> Answer {
    let (driver, context) = current()?;
    // SAFETY: by the C caller.
    let lane = unsafe { Lane::find(driver, &context, stream) }?;
    if length == 0 {
        return Ok(());
    }
    driver.device.memory.resolve(at, length as u64).ok_or(Code::INVALID_VALUE)?;
    lane.push(driver, work());
    Ok(())
}

fn fill(at: u64, length: usize, pattern: [u8; 4]) -> Answer {
    let (driver, _) = ready(length, &[at])?;
    if length == 0 { Ok(()) } else { crate::kernels::fill(&driver.device, at, length as u64, pattern) }
}

entries! {
    cuMemAlloc_v2 = "cuMemAlloc" since 3020 (address: *mut u64, length: usize) {
        let (driver, context) = current()?;
        if address.is_null() || length == 0 {
            return Err(Code::INVALID_VALUE);
        }
        latency::pay(Call::Alloc);
        put(address, driver.device.memory.allocate(length as u64, context.number)?)
    }

    cuMemFree_v2 = "cuMemFree" since 3020 (address: u64) {
        let (driver, context) = current()?;
        context.synchronize(driver)?;
        latency::pay(Call::Alloc);
        if address == 0 { Ok(()) } else { driver.device.memory.free(address) }
    }

    cuMemAllocAsync = "cuMemAllocAsync" since 11020 (address: *mut u64, length: usize, stream: u64) {
        let (driver, context) = current()?;
        Lane::find(driver, &context, stream)?;
        if address.is_null() || length == 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(address, driver.device.memory.allocate(length as u64, context.number)?)
    }

    cuMemFreeAsync = "cuMemFreeAsync" since 11020 (address: u64, stream: u64) {
        let (driver, context) = current()?;
        Lane::find(driver, &context, stream)?.synchronize(driver)?;
        driver.device.memory.free(address)
    }

    cuMemGetInfo_v2 = "cuMemGetInfo" since 3020 (free: *mut usize, total: *mut usize) {
        let (driver, _) = current()?;
        put(free, driver.device.memory.free_bytes() as usize)?;
        put(total, driver.device.memory.total() as usize)
    }

    cuMemGetAddressRange_v2 = "cuMemGetAddressRange" since 3020 (base: *mut u64, length: *mut usize, at: u64) {
        let (driver, _) = current()?;
        let (start, len) = driver.device.memory.containing(at).ok_or(Code::NOT_FOUND)?;
        if !base.is_null() {
            put(base, start)?;
        }
        if length.is_null() { Ok(()) } else { put(length, len as usize) }
    }

    cuMemHostAlloc = "cuMemHostAlloc" since 2020 (address: *mut *mut c_void, length: usize, flags: c_uint) {
        let _ = flags;
        current()?;
        let block = libc::aligned_alloc(4096, length.max(1).next_multiple_of(4096));
        if block.is_null() { Err(Code::OUT_OF_MEMORY) } else { put(address, block) }
    }

    cuMemAllocHost_v2 = "cuMemAllocHost" since 3020 (address: *mut *mut c_void, length: usize) {
        current()?;
        let block = libc::aligned_alloc(4096, length.max(1).next_multiple_of(4096));
        if block.is_null() { Err(Code::OUT_OF_MEMORY) } else { put(address, block) }
    }

    cuMemFreeHost = "cuMemFreeHost" since 2000 (address: *mut c_void) {
        let (driver, context) = current()?;
        context.synchronize(driver)?;
        libc::free(address);
        Ok(())
    }

    cuMemsetD8_v2 = "cuMemsetD8" since 3020 (at: u64, value: u8, count: usize) {
        fill(at, count, [value; 4])
    }

    cuMemsetD32_v2 = "cuMemsetD32" since 3020 (at: u64, value: c_uint, count: usize) {
        fill(at, count.checked_mul(4).ok_or(Code::INVALID_VALUE)?, value.to_ne_bytes())
    }

    cuMemsetD8Async = "cuMemsetD8Async" since 3020 (at: u64, value: u8, count: usize, stream: u64) {
        later(stream, count, at, || Work::Fill { device: at, len: count as u64, pattern: [value; 4] })
    }

    cuMemsetD32Async = "cuMemsetD32Async" since 3020 (at: u64, value: c_uint, count: usize, stream: u64) {
        let length = count.checked_mul(4).ok_or(Code::INVALID_VALUE)?;
        later(stream, length, at, || Work::Fill { device: at, len: length as u64, pattern: value.to_ne_bytes() })
    }

    cuMemcpyHtoD_v2 = "cuMemcpyHtoD" since 3020 (to: u64, from: *const c_void, length: usize) {
        let (driver, _) = ready(length, &[to])?;
        if let Some(span) = driver.device.memory.resolve(to, length as u64) {
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), span.host, length);
        }
        Ok(())
    }

    cuMemcpyDtoH_v2 = "cuMemcpyDtoH" since 3020 (to: *mut c_void, from: u64, length: usize) {
        let (driver, _) = ready(length, &[from])?;
        if let Some(span) = driver.device.memory.resolve(from, length as u64) {
            std::ptr::copy_nonoverlapping(span.host, to.cast::<u8>(), length);
        }
        Ok(())
    }

    cuMemcpyDtoD_v2 = "cuMemcpyDtoD" since 3020 (to: u64, from: u64, length: usize) {
        let (driver, _) = ready(length, &[to, from])?;
        let memory = &driver.device.memory;
        if let (Some(to), Some(from)) = (memory.resolve(to, length as u64), memory.resolve(from, length as u64)) {
            std::ptr::copy(from.host, to.host, length);
        }
        Ok(())
    }

    cuMemcpyHtoDAsync_v2 = "cuMemcpyHtoDAsync" since 3020 (to: u64, from: *const c_void, length: usize, stream: u64) {
        later(stream, length, to, || Work::CopyIn { device: to, host: from as usize, len: length as u64 })
    }

    cuMemcpyDtoHAsync_v2 = "cuMemcpyDtoHAsync" since 3020 (to: *mut c_void, from: u64, length: usize, stream: u64) {
        later(stream, length, from, || Work::CopyOut { host: to as usize, device: from, len: length as u64 })
    }

    cuPointerGetAttribute = "cuPointerGetAttribute" since 4000 (value: *mut c_void, attribute: c_int, at: u64) {
        let (driver, _) = current()?;
        let (start, len) = driver.device.memory.containing(at).ok_or(Code::INVALID_VALUE)?;
        match attribute {
            2 => put(value.cast::<c_int>(), 2),            // memory type: device
            3 => put(value.cast::<u64>(), at),             // device pointer
            8 => put(value.cast::<c_int>(), 0),            // managed
            9 => put(value.cast::<c_int>(), 0),            // device ordinal
            11 => put(value.cast::<u64>(), start),         // start of the range
            12 => put(value.cast::<usize>(), len as usize), // its size
            _ => Err(Code::INVALID_VALUE),
        }
    }
}
