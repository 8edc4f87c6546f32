//! Launching: parameters are gathered, the image's host code has its say, and the kernel joins the device's queue.
#![allow(unsafe_code)] // reads parameters that the program points to

use crate::bugs;
use crate::context::current;
use crate::driver::Driver;
use crate::error::{Answer, Code};
use crate::image::Kernel;
use crate::module::Function;
use crate::queue::Work;
use crate::stream::Lane;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a launch asks for.
pub struct Request {
    /// The function's handle.
    pub function: u64,
    /// Grid, in blocks.
    pub grid: [u32; 3],
    /// Block, in threads.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    /// The stream's handle.
    pub stream: u64,
    /// One address a parameter.
    pub parameters: *const *const c_void,
    /// A list of keys and values instead.
    pub extra: *const *const c_void,
}

/// Largest parameter buffer that stands on the stack, bytes.
const SMALL: usize = 4096;

/// Launches.
///
/// # Safety
/// The parameters must be as many and as large as the kernel's, and the handles live.
pub unsafe fn launch(request: &Request) -> Answer {
    let (driver, context) = current()?;
    // SAFETY: a program that unloads while it launches breaks the rule.
    let function = match unsafe { driver.functions.get(request.function) } {
        Some(function) => function,
        None => return bugs::stale_function(&context, request.function),
    };
    if !Arc::ptr_eq(&function.module.context, &context) {
        return Err(Code::INVALID_HANDLE);
    }
    let kernel_index = function.kernel.ok_or(Code::INVALID_IMAGE)?;
    let kernel = &function.module.image.kernels[kernel_index];
    check_shape(kernel, function.module.image.is_tile(), request)?;
    // SAFETY: by the caller.
    let lane = unsafe { Lane::find(driver, &context, request.stream) }?;
    if kernel.buffer_size <= SMALL {
        let mut buffer = Aligned([0; SMALL]);
        // SAFETY: by the caller.
        unsafe { fill_and_push(driver, &lane, function, kernel_index, request, &mut buffer.0[..kernel.buffer_size]) }
    } else {
        let mut buffer = vec![0; kernel.buffer_size];
        // SAFETY: by the caller.
        unsafe { fill_and_push(driver, &lane, function, kernel_index, request, &mut buffer) }
    }
}

/// The parameter buffer, as well aligned as a constant bank.
#[repr(align(64))]
struct Aligned([u8; SMALL]);

unsafe fn fill_and_push(
    driver: &Driver,
    lane: &Lane,
    function: &Function,
    kernel: usize,
    request: &Request,
    buffer: &mut [u8],
) -> Answer {
    let module = &function.module;
    // SAFETY: by the caller of `launch`.
    unsafe { gather(&module.image.kernels[kernel], request, buffer) }?;
    bugs::at_launch(module, request.function);
    if let Some(host) = &module.host {
        // SAFETY: the module is loaded, so its host object is mapped; the buffer has the kernel's size.
        unsafe { host.arguments_change(kernel, buffer) }?;
    }
    module.in_flight.fetch_add(1, Ordering::AcqRel);
    lane.push(driver, Work::Launch { module: Arc::clone(module), kernel, parameters: (&*buffer).into() });
    Ok(())
}

/// Checks grid and block. A Tile kernel knows its own block: 1 x 1 x 1 is what its launcher passes.
fn check_shape(kernel: &Kernel, tile: bool, request: &Request) -> Answer {
    let threads = request.block.iter().map(|&n| u64::from(n)).product::<u64>();
    let too_wide = request.grid[1] > 65_535 || request.grid[2] > 65_535;
    if threads == 0 || request.grid.contains(&0) || threads > 1024 || request.block[2] > 64 || too_wide {
        return Err(Code::INVALID_VALUE);
    }
    let own_block = tile && request.block == [1, 1, 1];
    if !own_block && kernel.required_block.is_some_and(|block| block != request.block) {
        return Err(Code::INVALID_VALUE);
    }
    if kernel.max_block.is_some_and(|block| threads > block.iter().map(|&n| u64::from(n)).product()) {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    if kernel.shared_size + u64::from(request.shared) > 227 * 1024 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Key in `extra`: the next value is the address of a packed buffer.
const BUFFER_POINTER: usize = 1;
/// Key in `extra`: the next value is the address of its size.
const BUFFER_SIZE: usize = 2;

/// Copies the parameters to where the kernel expects them.
unsafe fn gather(kernel: &Kernel, request: &Request, buffer: &mut [u8]) -> Answer {
    if !request.parameters.is_null() {
        for (index, parameter) in kernel.parameters.iter().enumerate() {
            // SAFETY: by the caller of `launch`; an array that is too short is read past its end, as by any C library.
            let from = unsafe { request.parameters.add(index).read_volatile() }.cast::<u8>();
            // SAFETY: as above; the image's offsets were checked against the buffer's size when it was read.
            unsafe { copy_parameter(from, &mut buffer[parameter.offset..parameter.offset + parameter.size]) };
        }
        return Ok(());
    }
    if request.extra.is_null() {
        return if kernel.parameters.is_empty() { Ok(()) } else { Err(Code::INVALID_VALUE) };
    }
    // SAFETY: by the caller of `launch`.
    let (from, size) = unsafe { packed(request.extra) }?;
    let user = kernel.parameters.iter().map(|p| p.offset + p.size).max().unwrap_or(0);
    if from.is_null() || size < user {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the program says that the buffer has this size.
    unsafe { std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), user) };
    Ok(())
}

/// Copies one parameter by plain loads, so that a bad address faults in this library.
#[inline]
unsafe fn copy_parameter(from: *const u8, to: &mut [u8]) {
    // SAFETY: by the caller.
    unsafe {
        match to.len() {
            8 => to.copy_from_slice(&from.cast::<[u8; 8]>().read_volatile()),
            4 => to.copy_from_slice(&from.cast::<[u8; 4]>().read_volatile()),
            _ => to.iter_mut().enumerate().for_each(|(at, byte)| *byte = from.add(at).read_volatile()),
        }
    }
}

/// Reads the list of `extra`: buffer and size.
unsafe fn packed(extra: *const *const c_void) -> Answer<(*const u8, usize)> {
    let (mut from, mut size) = (std::ptr::null(), 0);
    let mut at = extra;
    for _ in 0..8 {
        // SAFETY: the list ends with a null key.
        unsafe {
            match *at as usize {
                0 => return Ok((from, size)),
                BUFFER_POINTER => from = (*at.add(1)).cast::<u8>(),
                BUFFER_SIZE => size = *(*at.add(1)).cast::<usize>(),
                _ => return Err(Code::INVALID_VALUE),
            }
            at = at.add(2);
        }
    }
    Err(Code::INVALID_VALUE)
}
