//! The two families of entry points that load, look up and unload: `cuModule*` and `cuLibrary*` with `cuKernel*`.
//!
//! The loop is compiled once for each, so that its sequence of calls is exactly the family's.

use crate::driver::entries::{CuFunction, CuKernel, CuLibrary, CuModule, CuResult, Entries};
use crate::vocabulary::Call;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

/// A family of entry points.
///
/// The functions are unsafe as the driver's are: handles must be the driver's own, and not be used beyond their life, unless
/// a plan wants exactly that.
pub(super) trait Api: Copy + Send + Sync {
    /// The call that loads.
    const LOAD: Call;
    /// The call that looks a kernel up.
    const LOOK_UP: Call;
    /// The call that makes a function of what was looked up, where the family has one.
    const RESOLVE: Option<Call>;
    /// The call that unloads.
    const UNLOAD: Call;

    /// Loads `image` into `handle`.
    unsafe fn load(self, handle: &mut *mut c_void, image: *const c_void) -> CuResult;
    /// Looks `name` up in `handle`.
    unsafe fn look_up(self, found: &mut *mut c_void, handle: *mut c_void, name: &CStr) -> CuResult;
    /// Makes a function of what was looked up.
    unsafe fn resolve(self, function: &mut CuFunction, found: *mut c_void) -> CuResult;
    /// Unloads `handle`.
    unsafe fn unload(self, handle: *mut c_void) -> CuResult;
}

/// `cuModule*`.
#[derive(Clone, Copy)]
pub(super) struct ModuleApi(pub &'static Entries);

impl Api for ModuleApi {
    const LOAD: Call = Call::Load;
    const LOOK_UP: Call = Call::GetFunction;
    const RESOLVE: Option<Call> = None;
    const UNLOAD: Call = Call::Unload;

    #[inline(always)]
    unsafe fn load(self, handle: &mut CuModule, image: *const c_void) -> CuResult {
        // SAFETY: the caller vouches for the image; the handle is ours to write.
        unsafe { (self.0.cuModuleLoadData)(handle, image) }
    }

    #[inline(always)]
    unsafe fn look_up(self, found: &mut *mut c_void, handle: CuModule, name: &CStr) -> CuResult {
        // SAFETY: the caller vouches for the handle; the name ends in NUL.
        unsafe { (self.0.cuModuleGetFunction)(found, handle, name.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn resolve(self, function: &mut CuFunction, found: *mut c_void) -> CuResult {
        *function = found;
        0
    }

    #[inline(always)]
    unsafe fn unload(self, handle: CuModule) -> CuResult {
        // SAFETY: the caller vouches for the handle.
        unsafe { (self.0.cuModuleUnload)(handle) }
    }
}

type LoadLibrary = unsafe extern "C" fn(
    *mut CuLibrary,
    *const c_void,
    *mut i32,
    *mut *mut c_void,
    u32,
    *mut i32,
    *mut *mut c_void,
    u32,
) -> CuResult;

/// `cuLibrary*` and `cuKernel*`.
#[derive(Clone, Copy)]
pub(super) struct LibraryApi {
    load: LoadLibrary,
    get_kernel: unsafe extern "C" fn(*mut CuKernel, CuLibrary, *const std::ffi::c_char) -> CuResult,
    get_function: unsafe extern "C" fn(*mut CuFunction, CuKernel) -> CuResult,
    unload: unsafe extern "C" fn(CuLibrary) -> CuResult,
}

impl LibraryApi {
    /// The family's entry points.
    ///
    /// # Errors
    /// The name of the first that the library lacks.
    pub fn new(entries: &Entries) -> Result<LibraryApi, &'static str> {
        Ok(LibraryApi {
            load: entries.cuLibraryLoadData.ok_or("cuLibraryLoadData")?,
            get_kernel: entries.cuLibraryGetKernel.ok_or("cuLibraryGetKernel")?,
            get_function: entries.cuKernelGetFunction.ok_or("cuKernelGetFunction")?,
            unload: entries.cuLibraryUnload.ok_or("cuLibraryUnload")?,
        })
    }
}

impl Api for LibraryApi {
    const LOAD: Call = Call::LibraryLoad;
    const LOOK_UP: Call = Call::LibraryGetKernel;
    const RESOLVE: Option<Call> = Some(Call::KernelGetFunction);
    const UNLOAD: Call = Call::LibraryUnload;

    #[inline(always)]
    unsafe fn load(self, handle: &mut CuLibrary, image: *const c_void) -> CuResult {
        // SAFETY: the caller vouches for the image; no options are given, so none are read.
        unsafe { (self.load)(handle, image, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0) }
    }

    #[inline(always)]
    unsafe fn look_up(self, found: &mut CuKernel, handle: CuLibrary, name: &CStr) -> CuResult {
        // SAFETY: the caller vouches for the handle; the name ends in NUL.
        unsafe { (self.get_kernel)(found, handle, name.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn resolve(self, function: &mut CuFunction, found: CuKernel) -> CuResult {
        // SAFETY: the caller vouches for what was looked up.
        unsafe { (self.get_function)(function, found) }
    }

    #[inline(always)]
    unsafe fn unload(self, handle: CuLibrary) -> CuResult {
        // SAFETY: the caller vouches for the handle.
        unsafe { (self.unload)(handle) }
    }
}
