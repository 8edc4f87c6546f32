//! Launches.

use super::entries;
use crate::context::current;
use crate::error::Code;
use crate::latency::{self, Call};
use crate::launch::{Request, launch};
use crate::queue::Work;
use crate::stream::Lane;
use std::ffi::{c_uint, c_void};

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: u64,
    attributes: *const c_void,
    attribute_count: c_uint,
}

entries! {
    cuLaunchKernel = "cuLaunchKernel" since 4000 (
        function: u64, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: u64, parameters: *const *const c_void, extra: *const *const c_void,
    ) {
        latency::pay(Call::Launch);
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(&Request { function, grid, block, shared, stream, parameters, extra })
    }

    cuLaunchKernelEx = "cuLaunchKernelEx" since 11060 (
        config: *const LaunchConfig, function: u64, parameters: *const *const c_void, extra: *const *const c_void,
    ) {
        if config.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        latency::pay(Call::Launch);
        let &LaunchConfig { grid, block, shared, stream, .. } = &*config;
        launch(&Request { function, grid, block, shared, stream, parameters, extra })
    }

    cuLaunchHostFunc = "cuLaunchHostFunc" since 10000 (
        stream: u64, function: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void,
    ) {
        let (driver, context) = current()?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        Lane::find(driver, &context, stream)?.push(driver, Work::HostCall { function, data: data as usize });
        Ok(())
    }
}
