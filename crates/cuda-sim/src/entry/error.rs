//! Names and texts of codes.

use super::{entries, put};
use crate::error::{self, Code};
use std::ffi::{CStr, c_char, c_int};

unsafe fn answer(found: Option<&'static CStr>, out: *mut *const c_char) -> error::Answer {
    // SAFETY: by the C caller.
    unsafe { put(out, found.map_or(std::ptr::null(), CStr::as_ptr)) }?;
    found.map(|_| ()).ok_or(Code::INVALID_VALUE)
}

entries! {
    cuGetErrorName = "cuGetErrorName" since 6000 (code: c_int, text: *mut *const c_char) {
        answer(error::name(code), text)
    }

    cuGetErrorString = "cuGetErrorString" since 6000 (code: c_int, text: *mut *const c_char) {
        answer(error::text(code), text)
    }
}
