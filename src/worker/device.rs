//! The hidden command `device-arch`: opens a driver library in a child and prints the device's architecture, such as `120`.
//!
//! For sources that are compiled, or chosen, for the device before a run begins: the supervisor itself never loads a driver.
#![allow(unsafe_code)] // calls the driver

use crate::driver::{self, codes};
use std::ffi::c_int;
use std::path::Path;
use std::process::ExitCode;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
const MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
const MINOR: c_int = 76;

/// Prints the architecture on stdout, or one line on stderr and exits with 3.
pub fn main(library: &Path, device: i32) -> ExitCode {
    match arch(library, device) {
        Ok(arch) => {
            println!("{arch}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(3)
        }
    }
}

fn arch(library: &Path, ordinal: c_int) -> Result<c_int, String> {
    let entries = driver::open(library).map_err(|e| e.to_string())?;
    let check = |call: &str, code: c_int| match code {
        0 => Ok(()),
        code => Err(format!("{call} answered {}", codes::describe(code))),
    };
    let (mut device, mut major, mut minor) = (0, 0, 0);
    // SAFETY: the entry points have these signatures, and every pointer is valid for one int.
    unsafe {
        check("cuInit", (entries.cuInit)(0))?;
        check("cuDeviceGet", (entries.cuDeviceGet)(&mut device, ordinal))?;
        check("cuDeviceGetAttribute", (entries.cuDeviceGetAttribute)(&mut major, MAJOR, device))?;
        check("cuDeviceGetAttribute", (entries.cuDeviceGetAttribute)(&mut minor, MINOR, device))?;
    }
    Ok(10 * major + minor)
}
