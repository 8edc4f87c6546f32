//! What a function is like.

use super::{entries, put};
use crate::context::current;
use crate::error::{Answer, Code};
use crate::image::Kernel;
use crate::module::Function;
use std::ffi::{c_char, c_int, c_uint};

unsafe fn find(handle: u64) -> Answer<(&'static Function, &'static Kernel)> {
    let (driver, _) = current()?;
    // SAFETY: by the C caller.
    let function = unsafe { driver.functions.get(handle) }.ok_or(Code::INVALID_HANDLE)?;
    Ok((function, &function.module.image.kernels[function.kernel.ok_or(Code::INVALID_HANDLE)?]))
}

fn attribute(kernel: &Kernel, number: c_int) -> Answer<c_int> {
    let threads = |block: [u32; 3]| block.iter().product::<u32>() as c_int;
    Ok(match number {
        0 => kernel.required_block.or(kernel.max_block).map_or(1024, threads),
        1 => kernel.shared_size as c_int,
        4 => kernel.registers as c_int,
        5 | 6 => 120,
        2 | 3 | 7 | 10..=15 => 0,
        8 => 101_376,
        9 => -1,
        _ => return Err(Code::INVALID_VALUE),
    })
}

entries! {
    cuFuncGetAttribute = "cuFuncGetAttribute" since 2020 (value: *mut c_int, number: c_int, function: u64) {
        put(value, attribute(find(function)?.1, number)?)
    }

    cuFuncSetAttribute = "cuFuncSetAttribute" since 9000 (function: u64, number: c_int, value: c_int) {
        let _ = value;
        // Only the dynamic shared memory limit and the carve-out can be set.
        if matches!(number, 8 | 9) { find(function).map(|_| ()) } else { Err(Code::INVALID_VALUE) }
    }

    cuFuncSetCacheConfig = "cuFuncSetCacheConfig" since 3000 (function: u64, config: c_int) {
        let _ = config;
        find(function).map(|_| ())
    }

    cuFuncGetName = "cuFuncGetName" since 12030 (name: *mut *const c_char, function: u64) {
        put(name, find(function)?.1.name.as_ptr())
    }

    cuFuncGetModule = "cuFuncGetModule" since 11000 (module: *mut u64, function: u64) {
        let (found, _) = find(function)?;
        let (driver, context) = current()?;
        let modules = context.modules.lock();
        let is_it = |handle: &&u64| driver.modules.get(**handle).is_some_and(|m| std::sync::Arc::ptr_eq(m, &found.module));
        put(module, *modules.iter().find(is_it).ok_or(Code::INVALID_HANDLE)?)
    }

    cuFuncGetParamInfo = "cuFuncGetParamInfo" since 12040 (function: u64, index: usize, offset: *mut usize, size: *mut usize) {
        let parameter = find(function)?.1.parameters.get(index).ok_or(Code::INVALID_VALUE)?;
        put(offset, parameter.offset)?;
        if size.is_null() { Ok(()) } else { put(size, parameter.size) }
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessor = "cuOccupancyMaxActiveBlocksPerMultiprocessor" since 6050 (
        blocks: *mut c_int, function: u64, block_size: c_int, shared: usize,
    ) {
        let _ = shared;
        find(function)?;
        if block_size < 1 { Err(Code::INVALID_VALUE) } else { put(blocks, (1536 / block_size.min(1536)).min(24)) }
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" since 7000 (
        blocks: *mut c_int, function: u64, block_size: c_int, shared: usize, flags: c_uint,
    ) {
        let _ = (shared, flags);
        find(function)?;
        if block_size < 1 { Err(Code::INVALID_VALUE) } else { put(blocks, (1536 / block_size.min(1536)).min(24)) }
    }
}
