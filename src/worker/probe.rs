//! Calls the callbacks of a Tile image's host object on marked buffers and says which bytes they wrote.
//!
//! This runs an image's own machine code: only ever in a child that was started for it (`stress probe-callbacks`, image on
//! stdin, JSON on stdout). No driver is involved. The driver's side of the interface is a table of functions of which
//! images use one; what it is asked for is answered with a plain number.
#![allow(unsafe_code)] // maps an image's host code and calls it

use crate::cubin::{ProbeReport, ProbedCallback};
use cubin_image::{Cubin, HostObject, Kernel, LinkedHost, Parameter, Pointer};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Read;
use std::process::ExitCode;

/// Bytes behind a kernel's parameter buffer that are watched too.
const GUARD: usize = 4096;
/// Two marks: a byte that a callback sets to one of them shows under the other.
const MARKS: [u8; 2] = [0xa5, 0x5a];
/// The interface version that the driver's side announces. Guess: what a driver that knows both forms would say.
const HOST_API_VERSION: c_int = 2;

/// The child: image on stdin, JSON on stdout, one line on stderr where it cannot.
pub fn main() -> ExitCode {
    let mut image = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut image).map_err(|e| e.to_string());
    match read.and_then(|_| probe(&image)) {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(3)
        }
    }
}

fn probe(image: &[u8]) -> Result<ProbeReport, String> {
    let cubin = Cubin::parse(image).map_err(|e| e.to_string())?;
    let host = cubin.host_object().ok_or("the image has no host object")?;
    host.check_native().map_err(|e| e.to_string())?;
    let loaded = Loaded::new(host)?;
    let (pre_load, table) = loaded.pre_load()?;
    let mut callbacks = Vec::new();
    for index in 0..table.nfuncs as usize {
        let entry = loaded.entry(&table, index)?;
        let kernel = cubin.kernels.iter().find(|k| k.name.as_bytes() == entry.name.to_bytes());
        if let (Some(kernel), Some(callback)) = (kernel, entry.callback) {
            callbacks.push(call_on_marks(kernel, callback));
        }
    }
    Ok(ProbeReport { pre_load, callbacks })
}

type OnPreLoad = unsafe extern "C" fn(*const HostApi, *mut c_void, c_int, *mut *const Table) -> c_int;
type OnArgumentsChange = unsafe extern "C" fn(*const c_void, *mut c_void, u64, *mut u8) -> c_int;
type HostApi = [unsafe extern "C" fn(*mut c_void, u32, *mut c_int) -> c_int; 16];

/// The image's table, 72 bytes; offsets as measured on 13.1 to 13.5.
#[repr(C)]
#[derive(Clone, Copy)]
struct Table {
    version: u64,
    zero: u64,
    state: u64,
    zero_too: u64,
    func_size: u64,
    funcs: *const u8,
    nfuncs: u64,
    api_version: u64,
    on_pre_load: Option<OnPreLoad>,
}

struct Entry<'a> {
    name: &'a CStr,
    callback: Option<OnArgumentsChange>,
}

/// The driver's side: whatever an image asks for is 1. (13.1 to 13.3 ask for one number and ignore it.)
unsafe extern "C" fn answer(_context: *mut c_void, _what: u32, out: *mut c_int) -> c_int {
    if !out.is_null() {
        // SAFETY: images hand over an int on their stack.
        unsafe { out.write(1) };
    }
    0
}

static HOST_API: HostApi = [answer; 16];

/// A host object in memory, for the rest of this process's life.
struct Loaded {
    base: *mut u8,
    linked: LinkedHost,
}

impl Loaded {
    fn new(host: &HostObject) -> Result<Loaded, String> {
        let size = host.linked_size().map_err(|e| e.to_string())?;
        let refused = |e: rustix::io::Errno| format!("cannot map the host object: {e}");
        let (read, write) = (ProtFlags::READ, ProtFlags::WRITE);
        // SAFETY: a fresh private mapping at an address of the kernel's choice.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), size, read | write, MapFlags::PRIVATE) }.map_err(refused)?;
        let base = base.cast::<u8>();
        let linked = host.link_at(base as u64).map_err(|e| e.to_string())?;
        // SAFETY: the mapping is `size` bytes, which is what `link_at` lays out; nothing else refers to it yet.
        unsafe {
            std::ptr::copy_nonoverlapping(linked.bytes.as_ptr(), base, linked.bytes.len().min(size));
            let protect = |range: &std::ops::Range<usize>, flags| match range.len() {
                0 => Ok(()),
                length => mprotect(base.add(range.start).cast(), length, flags),
            };
            protect(&linked.text, MprotectFlags::READ | MprotectFlags::EXEC).map_err(refused)?;
            protect(&linked.tables, MprotectFlags::READ).map_err(refused)?;
        }
        Ok(Loaded { base, linked })
    }

    /// A value of the object's memory, if it lies there as a whole.
    fn read<T: Copy>(&self, address: *const u8) -> Result<T, String> {
        let offset = (address as usize).wrapping_sub(self.base as usize);
        let end = offset.checked_add(size_of::<T>());
        if end.is_none_or(|end| end > self.linked.bytes.len()) {
            return Err(format!("the table points to {address:?}, outside the host object"));
        }
        // SAFETY: the whole value lies inside the mapping, which stays readable; every caller's `T` is plain numbers and
        // pointers, for which any bytes are a value.
        Ok(unsafe { address.cast::<T>().read_unaligned() })
    }

    fn pre_load(&self) -> Result<(i32, Table), String> {
        // SAFETY: `callbacks` and the 72 bytes behind it lie inside the mapping.
        let table: Table = self.read(unsafe { self.base.add(self.linked.callbacks) })?;
        let on_pre_load = table.on_pre_load.ok_or("the host object has no on_pre_load")?;
        let mut out: *const Table = std::ptr::null();
        // SAFETY: the image's own function, by the convention that its compiler uses. What it does is what this child is
        // for: a fault ends this process and is the answer.
        let returned = unsafe { on_pre_load(&HOST_API, std::ptr::null_mut(), HOST_API_VERSION, &mut out) };
        if returned != 0 {
            return Err(format!("on_pre_load returned {returned}"));
        }
        Ok((returned, self.read(out.cast())?))
    }

    fn entry(&self, table: &Table, index: usize) -> Result<Entry<'_>, String> {
        let at = table.funcs.wrapping_add(index.wrapping_mul(table.func_size as usize));
        let name: *const c_char = self.read(at)?;
        let callback: Option<OnArgumentsChange> = self.read(at.wrapping_add(0x28))?;
        let offset = (name as usize).wrapping_sub(self.base as usize);
        let rest = self.linked.bytes.get(offset..).ok_or("a kernel's name lies outside the host object")?;
        let name = CStr::from_bytes_until_nul(rest).map_err(|e| e.to_string())?;
        Ok(Entry { name, callback })
    }
}

/// A parameter buffer, aligned as a driver's would be.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

fn call_on_marks(kernel: &Kernel, callback: OnArgumentsChange) -> ProbedCallback {
    let size = kernel.cbank_param_size.max(kernel.user_param_bytes()) as usize;
    let mut changed = vec![false; size + GUARD];
    let mut returned = 0;
    for mark in MARKS {
        let mut lines = vec![Line([mark; 64]); (size + GUARD).div_ceil(64)];
        let mut before = vec![mark; lines.len() * 64];
        fill_parameters(&kernel.parameters, &mut before);
        lines.iter_mut().zip(before.chunks_exact(64)).for_each(|(line, bytes)| line.0.copy_from_slice(bytes));
        // SAFETY: the image's own function, as in `pre_load`; the buffer is larger than the kernel says, and a write
        // further away is a fault of the image that costs this child.
        returned =
            unsafe { callback((&raw const HOST_API).cast(), std::ptr::null_mut(), 0, lines.as_mut_ptr().cast()) };
        let after = lines.iter().flat_map(|line| line.0);
        changed.iter_mut().zip(after.zip(&before)).for_each(|(changed, (after, before))| *changed |= after != *before);
    }
    let offset = |index: usize| index as u32;
    ProbedCallback {
        kernel: kernel.name.clone(),
        returned,
        changed: changed
            .iter()
            .position(|&c| c)
            .zip(changed.iter().rposition(|&c| c))
            .map(|(a, b)| (offset(a), offset(b))),
        changed_bytes: offset(changed.iter().filter(|&&c| c).count()),
        beyond_buffer: changed[size..].contains(&true),
    }
}

/// What a launch of 128x128 arrays would pass; no address among them is ever followed by a callback.
fn fill_parameters(parameters: &[Parameter], buffer: &mut [u8]) {
    let mut behind_pointer = 0;
    for parameter in parameters {
        let is_pointer = parameter.pointer() == Pointer::Sure;
        behind_pointer = if is_pointer { 0 } else { behind_pointer + 1 };
        let value: u64 = match behind_pointer {
            0 => 0x7f12_0000_0000 + (u64::from(parameter.ordinal) << 24),
            1..=3 => 128,
            _ => 1,
        };
        let (start, size) = (usize::from(parameter.offset), parameter.size as usize);
        if let Some(place) = buffer.get_mut(start..start.saturating_add(size)) {
            place.fill(0);
            let length = size.min(8);
            place[..length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
    }
}
