//! Devices and the primary context.

use super::{entries, put, put_text};
use crate::context;
use crate::device::Device;
use crate::driver::driver;
use crate::error::{Answer, Code};
use std::ffi::{CStr, c_char, c_int, c_uint};

/// The device with this number: there is one, 0.
fn find(number: c_int) -> Answer<&'static Device> {
    let driver = driver()?;
    if number == 0 { Ok(&driver.device) } else { Err(Code::INVALID_DEVICE) }
}

/// Where the device claims to be on the PCI bus.
const BUS_ID: &str = "0000:01:00.0";

entries! {
    cuDeviceGetCount = "cuDeviceGetCount" since 2000 (count: *mut c_int) {
        driver()?;
        put(count, 1)
    }

    cuDeviceGet = "cuDeviceGet" since 2000 (device: *mut c_int, ordinal: c_int) {
        find(ordinal)?;
        put(device, ordinal)
    }

    cuDeviceGetName = "cuDeviceGetName" since 2000 (name: *mut c_char, len: c_int, device: c_int) {
        put_text(name, len, &find(device)?.name)
    }

    cuDeviceGetUuid = "cuDeviceGetUuid" since 9020 (uuid: *mut [u8; 16], device: c_int) {
        find(device)?;
        put(uuid, *b"cuda-sim-device0")
    }

    cuDeviceGetUuid_v2 = "cuDeviceGetUuid" since 11040 (uuid: *mut [u8; 16], device: c_int) {
        find(device)?;
        put(uuid, *b"cuda-sim-device0")
    }

    cuDeviceTotalMem_v2 = "cuDeviceTotalMem" since 3020 (bytes: *mut usize, device: c_int) {
        put(bytes, find(device)?.memory.total() as usize)
    }

    cuDeviceGetAttribute = "cuDeviceGetAttribute" since 2000 (value: *mut c_int, attribute: c_int, device: c_int) {
        put(value, find(device)?.attribute(attribute).ok_or(Code::INVALID_VALUE)?)
    }

    cuDeviceComputeCapability = "cuDeviceComputeCapability" since 2000 (major: *mut c_int, minor: *mut c_int, device: c_int) {
        let arch = find(device)?.arch;
        put(major, arch.major as c_int)?;
        put(minor, arch.minor as c_int)
    }

    cuDeviceGetPCIBusId = "cuDeviceGetPCIBusId" since 4010 (text: *mut c_char, len: c_int, device: c_int) {
        find(device)?;
        put_text(text, len, BUS_ID)
    }

    cuDeviceGetByPCIBusId = "cuDeviceGetByPCIBusId" since 4010 (device: *mut c_int, text: *const c_char) {
        driver()?;
        if text.is_null() || CStr::from_ptr(text).to_bytes() != BUS_ID.as_bytes() {
            return Err(Code::INVALID_VALUE);
        }
        put(device, 0)
    }

    cuDeviceCanAccessPeer = "cuDeviceCanAccessPeer" since 4000 (can: *mut c_int, device: c_int, peer: c_int) {
        find(device)?;
        find(peer)?;
        put(can, 0)
    }

    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain" since 7000 (context: *mut u64, device: c_int) {
        find(device)?;
        if context.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(context, context::retain_primary()?)
    }

    cuDevicePrimaryCtxRelease_v2 = "cuDevicePrimaryCtxRelease" since 7000 (device: c_int) {
        find(device)?;
        context::release_primary()
    }

    cuDevicePrimaryCtxReset_v2 = "cuDevicePrimaryCtxReset" since 7000 (device: c_int) {
        find(device)?;
        context::reset_primary()
    }

    cuDevicePrimaryCtxSetFlags_v2 = "cuDevicePrimaryCtxSetFlags" since 7000 (device: c_int, flags: c_uint) {
        find(device)?;
        context::set_primary_flags(flags)
    }

    cuDevicePrimaryCtxGetState = "cuDevicePrimaryCtxGetState" since 7000 (device: c_int, flags: *mut c_uint, active: *mut c_int) {
        find(device)?;
        let (have, live) = context::primary_state()?;
        put(flags, have)?;
        put(active, c_int::from(live))
    }
}
