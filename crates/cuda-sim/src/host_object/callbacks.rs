//! The tables that Tile host objects hand to a driver, as read off images of tileiras 13.1 to 13.5.
//!
//! Offsets are evidence; what the unused slots are for, and what the driver's arguments mean, are guesses and marked so.
#![allow(unsafe_code)] // functions of the image are called

use std::ffi::{c_char, c_int, c_void};

/// Called at every launch with the parameters' buffer, into which it may write hidden parameters; 0 is success. Only the
/// last argument is read. Guess: host interface, state, size.
pub type OnArgumentsChange = unsafe extern "C" fn(*const c_void, *mut c_void, u64, *mut u8) -> c_int;

/// One kernel's entry: 64 bytes.
#[repr(C)]
pub struct FuncCallbacks {
    /// The kernel's name.
    pub name: *const c_char,
    /// Always 0. Guess: callbacks for other events.
    unused: [*const c_void; 4],
    /// Called at every launch.
    pub on_arguments_change: Option<OnArgumentsChange>,
    unused_end: [*const c_void; 2],
}

/// The image's table: 72 bytes.
#[repr(C)]
pub struct Callbacks {
    /// 2 in every version seen.
    pub version: u32,
    padding: u32,
    unused: u64,
    /// 0. Guess: the driver's or the user's state.
    pub state: *mut c_void,
    unused_too: u64,
    /// Size of an entry of `funcs`, bytes: 64.
    pub func_size: u64,
    /// The kernels' entries.
    pub funcs: *const FuncCallbacks,
    /// How many there are.
    pub nfuncs: u64,
    /// Guess: version of the host interface that the image speaks; 1 up to 13.3, 2 from 13.4 on.
    pub api_version: u32,
    padding_too: u32,
    /// Called once when the module is loaded; writes where the table to use is.
    pub on_pre_load: Option<unsafe extern "C" fn(*const HostApi, *mut c_void, c_int, *mut *const Callbacks) -> c_int>,
}

/// What the driver offers to host objects: functions by slot. Only slot 6 (+0x30) is used by any image seen.
pub type HostApi = [unsafe extern "C" fn(*mut c_void, u32, *mut c_int) -> c_int; 16];

/// The version of the interface that this driver tells images. Guess: what a driver that knows both forms would say.
pub const HOST_API_VERSION: c_int = 2;

/// The one table of this driver.
pub static HOST_API: HostApi = {
    let mut api: HostApi = [not_supported; 16];
    api[6] = device_attribute;
    api
};

/// Slot 6. Guess: a device attribute (0x10 is the number of multiprocessors).
unsafe extern "C" fn device_attribute(_context: *mut c_void, what: u32, out: *mut c_int) -> c_int {
    let Some(value) = crate::driver::device_if_any().and_then(|device| device.attribute(what as c_int)) else {
        return 1;
    };
    // SAFETY: images hand over an int on their stack.
    unsafe { out.write(value) };
    0
}

unsafe extern "C" fn not_supported(_: *mut c_void, _: u32, _: *mut c_int) -> c_int {
    crate::error::Code::NOT_SUPPORTED.0
}

const _: () = assert!(size_of::<FuncCallbacks>() == 64 && size_of::<Callbacks>() == 72);
