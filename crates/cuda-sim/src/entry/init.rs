//! Bringing the driver up.

use super::{entries, put};
use crate::driver;
use crate::error::Code;
use std::ffi::{c_int, c_uint, c_void};

entries! {
    cuInit = "cuInit" since 2000 (flags: c_uint) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver::init()
    }

    cuDriverGetVersion = "cuDriverGetVersion" since 2020 (version: *mut c_int) {
        put(version, driver::VERSION)
    }

    cuGetExportTable = "cuGetExportTable" since 3000 (table: *mut *const c_void, id: *const c_void) {
        let _ = (table, id);
        Err(Code::NOT_SUPPORTED)
    }
}
