//! What kernels do: the add kernel really adds, others touch what they point to.
#![allow(unsafe_code)] // works on memory of the device

use crate::bugs;
use crate::device::Device;
use crate::error::{Answer, Code};
use crate::image::{Computes, Kernel};
use crate::latency::{self, Call};
use crate::module::Module;

/// The Tile add kernel's tile: rows and columns.
const TILE: i64 = 128;

/// Runs a kernel with its parameters; a code sticks to the context.
pub fn run(device: &Device, module: &Module, kernel: usize, parameters: &[u8]) -> Answer {
    latency::pay(Call::Kernel);
    let kernel = &module.image.kernels[kernel];
    let limit = match kernel.computes {
        Computes::Touches => return touch(device, kernel, parameters),
        Computes::IllegalAccess => return Err(Code::ILLEGAL_ADDRESS),
        Computes::Add => i64::MAX,
        Computes::AddTile => TILE,
    };
    let [a, b, c] = [0, 5, 10].map(|at| Array::read(kernel, parameters, at));
    let rows = a.shape[0].min(b.shape[0]).min(c.shape[0]).min(limit);
    let columns = a.shape[1].min(b.shape[1]).min(c.shape[1]).min(limit);
    if rows <= 0 || columns <= 0 {
        return Ok(());
    }
    let [a, b, c] = [a.span(device, rows, columns)?, b.span(device, rows, columns)?, c.span(device, rows, columns)?];
    if bugs::runs_another_kernel() {
        copy(&a, &c, rows, columns);
    } else {
        add(&a, &b, &c, rows, columns);
    }
    Ok(())
}

/// A two-dimensional array of floats as the kernel's five parameters give it.
struct Array {
    address: u64,
    shape: [i64; 2],
    stride: [i64; 2],
}

/// The same with host addresses.
struct Floats {
    _span: crate::memory::Span,
    first: *mut f32,
    stride: [i64; 2],
}

impl Array {
    fn read(kernel: &Kernel, parameters: &[u8], at: usize) -> Array {
        let word = |index: usize| {
            let offset = kernel.parameters[index].offset;
            parameters.get(offset..offset + 4).and_then(|b| b.try_into().ok()).map_or(0, i32::from_le_bytes)
        };
        let offset = kernel.parameters[at].offset;
        let address = parameters.get(offset..offset + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        let [shape0, shape1, stride0, stride1] = [1, 2, 3, 4].map(|n| i64::from(word(at + n)));
        Array { address, shape: [shape0, shape1], stride: [stride0, stride1] }
    }

    /// The memory from the array's lowest to its highest element; 700 where it is not one allocation's, 716 where an
    /// element is not on a multiple of four.
    fn span(&self, device: &Device, rows: i64, columns: i64) -> Answer<Floats> {
        let reach = [(rows - 1) * self.stride[0], (columns - 1) * self.stride[1]];
        let low: i64 = reach.iter().map(|&n| n.min(0)).sum();
        let high: i64 = reach.iter().map(|&n| n.max(0)).sum();
        if !self.address.is_multiple_of(4) {
            return Err(Code::MISALIGNED_ADDRESS);
        }
        let lowest = self.address.checked_add_signed(4 * low).ok_or(Code::ILLEGAL_ADDRESS)?;
        let span = device.memory.resolve(lowest, (4 * (high - low) + 4) as u64).ok_or(Code::ILLEGAL_ADDRESS)?;
        // SAFETY: the element 0 lies `low` elements above the lowest, within the span.
        let first = unsafe { span.host.cast::<f32>().offset(-low as isize) };
        Ok(Floats { _span: span, first, stride: self.stride })
    }
}

impl Floats {
    fn at(&self, row: i64, column: i64) -> *mut f32 {
        self.first.wrapping_offset((row * self.stride[0] + column * self.stride[1]) as isize)
    }

    fn dense(&self) -> bool {
        self.stride[1] == 1
    }
}

fn add(a: &Floats, b: &Floats, c: &Floats, rows: i64, columns: i64) {
    let dense = a.dense() && b.dense() && c.dense();
    for row in 0..rows {
        if dense {
            let (a, b, c) = (a.at(row, 0), b.at(row, 0), c.at(row, 0));
            for n in 0..columns as usize {
                // SAFETY: rows and columns were resolved to allocated memory; arrays may overlap, so no slices.
                unsafe { *c.add(n) = *a.add(n) + *b.add(n) };
            }
        } else {
            for column in 0..columns {
                // SAFETY: as above.
                unsafe { *c.at(row, column) = *a.at(row, column) + *b.at(row, column) };
            }
        }
    }
}

/// The kernel of another module: `c = a`.
fn copy(a: &Floats, c: &Floats, rows: i64, columns: i64) {
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        // SAFETY: as in `add`.
        unsafe { *c.at(row, column) = *a.at(row, column) };
    }
}

/// Reads the first and the last byte of whatever a pointer parameter points into.
fn touch(device: &Device, kernel: &Kernel, parameters: &[u8]) -> Answer {
    for parameter in kernel.parameters.iter().filter(|p| p.size == 8) {
        let bytes = parameters.get(parameter.offset..parameter.offset + 8).and_then(|b| b.try_into().ok());
        let value = bytes.map_or(0, u64::from_le_bytes);
        let Some((start, len)) = device.memory.containing(value) else {
            if parameter.pointer && value != 0 || device.memory.in_range(value) {
                return Err(Code::ILLEGAL_ADDRESS);
            }
            continue;
        };
        let span = device.memory.resolve(start, len).ok_or(Code::ILLEGAL_ADDRESS)?;
        // SAFETY: the span covers the whole allocation, which is not empty.
        unsafe {
            span.host.add((value - start) as usize).read_volatile();
            span.host.add(len as usize - 1).read_volatile();
        }
    }
    Ok(())
}

/// Fills memory with a pattern of four bytes.
pub fn fill(device: &Device, at: u64, len: u64, pattern: [u8; 4]) -> Answer {
    let span = device.memory.resolve(at, len).ok_or(Code::ILLEGAL_ADDRESS)?;
    // SAFETY: the span holds `len` bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(span.host, len as usize) };
    if pattern.iter().all(|&byte| byte == pattern[0]) {
        bytes.fill(pattern[0]);
    } else {
        bytes.chunks_mut(4).for_each(|chunk| chunk.copy_from_slice(&pattern[..chunk.len()]));
    }
    Ok(())
}
