//! The one list of driver entry points: name, signature, whether a plain run needs it.
//!
//! From this list come the table that [`super::library::open`] fills, and the `extern "C"` functions that the crate `cust`
//! is linked against: each forwards through the table, so that `cust` and the hot loop reach the same library. Nothing here
//! opens a library or decides anything.
//!
//! `cust`'s result type is a Rust `enum` of an older CUDA's codes, and a code outside of it would be undefined behaviour.
//! So a forwarder keeps the driver's own code for [`last_code`] and hands `cust` 999 (unknown) where its enum has no such
//! code.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::OnceLock;

/// `CUresult`: 0 is success.
pub type CuResult = c_int;
/// `CUdevice`: an ordinal.
pub type CuDevice = c_int;
/// `CUdeviceptr`.
pub type CuDevicePtr = u64;
/// `CUcontext`.
pub type CuContext = *mut c_void;
/// `CUmodule`.
pub type CuModule = *mut c_void;
/// `CUfunction`.
pub type CuFunction = *mut c_void;
/// `CUstream`.
pub type CuStream = *mut c_void;
/// `CUlibrary`.
pub type CuLibrary = *mut c_void;
/// `CUkernel`.
pub type CuKernel = *mut c_void;

/// What a forwarder answers before a library is open, as the driver does before `cuInit`: `CUDA_ERROR_NOT_INITIALIZED`.
const NOT_INITIALIZED: CuResult = 3;
/// What a forwarder answers where the library lacks the entry point: `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: CuResult = 801;
/// `CUDA_ERROR_UNKNOWN`, which `cust` gets for every code that its enum lacks.
const UNKNOWN: CuResult = 999;

/// Looks a symbol up; null where there is none.
pub(super) type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

static TABLE: OnceLock<Entries> = OnceLock::new();

thread_local! {
    static LAST: Cell<CuResult> = const { Cell::new(0) };
}

/// The driver's own code of this thread's last call through `cust` that did not succeed.
pub fn last_code() -> CuResult {
    LAST.get()
}

/// Forgets it, so that the next [`last_code`] is not an older call's. 0 then stands for "no driver call failed".
pub fn forget_code() {
    LAST.set(0);
}

/// The table, once a library is open.
pub fn table() -> Option<&'static Entries> {
    TABLE.get()
}

/// Makes `entries` the table that the forwarders use; none where there is one already.
pub(super) fn install(entries: Entries) -> Option<&'static Entries> {
    TABLE.set(entries).ok()?;
    TABLE.get()
}

/// Keeps `code` for [`last_code`] and says what `cust` may be told.
fn for_cust(code: CuResult) -> CuResult {
    if code == 0 {
        return 0;
    }
    LAST.set(code);
    match code {
        // The codes of `cudaError_enum` in cust_raw 0.11.3.
        1..=8
        | 34
        | 100..=102
        | 200..=202
        | 205..=224
        | 300..=304
        | 400
        | 401
        | 500
        | 600
        | 700..=705
        | 708..=720
        | 800..=809
        | 900..=911 => code,
        _ => UNKNOWN,
    }
}

macro_rules! entries {
    (
        required { $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)+ }
        optional { $($(#[$odoc:meta])* fn $oname:ident($($oarg:ident: $oty:ty),* $(,)?);)+ }
    ) => {
        /// The entry points of the library that was opened.
        #[allow(non_snake_case)]
        #[derive(Clone, Copy, Debug)]
        pub struct Entries {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($ty),*) -> CuResult,)+
            $($(#[$odoc])* pub $oname: Option<unsafe extern "C" fn($($oty),*) -> CuResult>,)+
        }

        /// Names of the entry points that every run needs.
        pub const REQUIRED: &[&str] = &[$(stringify!($name)),+];
        /// Names of the entry points that only some plans need.
        pub const OPTIONAL: &[&str] = &[$(stringify!($oname)),+];

        /// Pointer to a function of the type that the list gives `name`, or null.
        fn symbol(lookup: Lookup<'_>, name: &str) -> *mut c_void {
            let mut bytes = [0u8; 64];
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            CStr::from_bytes_until_nul(&bytes).map_or(std::ptr::null_mut(), lookup)
        }

        impl Entries {
            /// Looks every entry point up.
            ///
            /// # Errors
            /// The name of the first required one that is not there.
            ///
            /// # Safety
            /// What `lookup` gives for a name of the list must be null or a function of that name's signature in the CUDA
            /// driver API, callable for the rest of the process's life.
            pub(super) unsafe fn resolve(lookup: Lookup<'_>) -> Result<Entries, &'static str> {
                Ok(Entries {
                    $($name: {
                        let found = symbol(lookup, stringify!($name));
                        if found.is_null() {
                            return Err(stringify!($name));
                        }
                        // SAFETY: not null, and by this function's contract a function of exactly this signature.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> CuResult>(found)
                        }
                    },)+
                    $($oname: {
                        let found = symbol(lookup, stringify!($oname));
                        // SAFETY: a null pointer is `None` of an optional function pointer; anything else is, by this
                        // function's contract, a function of exactly this signature.
                        unsafe {
                            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn($($oty),*) -> CuResult>>(found)
                        }
                    },)+
                })
            }
        }

        /// What `cust` is linked against.
        #[allow(non_snake_case)]
        mod exported {
            use super::*;
            $(
                $(#[$doc])*
                ///
                /// # Safety
                /// As for the entry point of this name.
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name($($arg: $ty),*) -> CuResult {
                    match TABLE.get() {
                        // SAFETY: the caller vouches for the arguments; the table holds functions of these signatures.
                        Some(table) => for_cust(unsafe { (table.$name)($($arg),*) }),
                        None => for_cust(NOT_INITIALIZED),
                    }
                }
            )+
            $(
                $(#[$odoc])*
                ///
                /// # Safety
                /// As for the entry point of this name.
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $oname($($oarg: $oty),*) -> CuResult {
                    match TABLE.get().map(|table| table.$oname) {
                        // SAFETY: the caller vouches for the arguments; the table holds functions of these signatures.
                        Some(Some(function)) => for_cust(unsafe { function($($oarg),*) }),
                        Some(None) => for_cust(NOT_SUPPORTED),
                        None => for_cust(NOT_INITIALIZED),
                    }
                }
            )+
        }
    };
}

entries! {
    required {
        /// Brings the driver up.
        fn cuInit(flags: c_uint);
        /// Reads the newest CUDA version that the driver speaks, as 1000 x major + 10 x minor.
        fn cuDriverGetVersion(version: *mut c_int);
        /// Counts devices.
        fn cuDeviceGetCount(count: *mut c_int);
        /// Opens a device by number.
        fn cuDeviceGet(device: *mut CuDevice, ordinal: c_int);
        /// Reads a device's name.
        fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CuDevice);
        /// Reads one property of a device.
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CuDevice);
        /// Reads a device's memory size, bytes.
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CuDevice);
        /// Takes the primary context.
        fn cuDevicePrimaryCtxRetain(context: *mut CuContext, device: CuDevice);
        /// Gives the primary context back.
        fn cuDevicePrimaryCtxRelease_v2(device: CuDevice);
        /// Makes a context and makes it current.
        fn cuCtxCreate_v2(context: *mut CuContext, flags: c_uint, device: CuDevice);
        /// Destroys a context.
        fn cuCtxDestroy_v2(context: CuContext);
        /// Reads the API version of a context.
        fn cuCtxGetApiVersion(context: CuContext, version: *mut c_uint);
        /// Binds a context to the calling thread.
        fn cuCtxSetCurrent(context: CuContext);
        /// Reads the calling thread's context.
        fn cuCtxGetCurrent(context: *mut CuContext);
        /// Waits for all work of the current context.
        fn cuCtxSynchronize();
        /// Allocates device memory.
        fn cuMemAlloc_v2(pointer: *mut CuDevicePtr, bytes: usize);
        /// Frees device memory.
        fn cuMemFree_v2(pointer: CuDevicePtr);
        /// Reads free and total device memory, bytes.
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        /// Fills device memory.
        fn cuMemsetD8_v2(pointer: CuDevicePtr, value: c_uchar, bytes: usize);
        /// Copies to the device.
        fn cuMemcpyHtoD_v2(to: CuDevicePtr, from: *const c_void, bytes: usize);
        /// Copies from the device.
        fn cuMemcpyDtoH_v2(to: *mut c_void, from: CuDevicePtr, bytes: usize);
        /// Loads a module from an image in memory.
        fn cuModuleLoadData(module: *mut CuModule, image: *const c_void);
        /// The same, with options for the JIT compiler.
        fn cuModuleLoadDataEx(
            module: *mut CuModule,
            image: *const c_void,
            count: c_uint,
            options: *mut c_int,
            values: *mut *mut c_void,
        );
        /// Looks a kernel up in a module.
        fn cuModuleGetFunction(function: *mut CuFunction, module: CuModule, name: *const c_char);
        /// Unloads a module.
        fn cuModuleUnload(module: CuModule);
        /// Launches a kernel.
        fn cuLaunchKernel(
            function: CuFunction,
            grid_x: c_uint,
            grid_y: c_uint,
            grid_z: c_uint,
            block_x: c_uint,
            block_y: c_uint,
            block_z: c_uint,
            shared_bytes: c_uint,
            stream: CuStream,
            parameters: *mut *mut c_void,
            extra: *mut *mut c_void,
        );
        /// Makes a stream.
        fn cuStreamCreate(stream: *mut CuStream, flags: c_uint);
        /// Makes a stream of a given priority.
        fn cuStreamCreateWithPriority(stream: *mut CuStream, flags: c_uint, priority: c_int);
        /// Waits for a stream.
        fn cuStreamSynchronize(stream: CuStream);
        /// Destroys a stream.
        fn cuStreamDestroy_v2(stream: CuStream);
        /// Names an error.
        fn cuGetErrorName(code: CuResult, name: *mut *const c_char);
        /// Describes an error.
        fn cuGetErrorString(code: CuResult, text: *mut *const c_char);
    }
    optional {
        /// Loads a library from an image in memory.
        fn cuLibraryLoadData(
            library: *mut CuLibrary,
            image: *const c_void,
            jit_options: *mut c_int,
            jit_values: *mut *mut c_void,
            jit_count: c_uint,
            library_options: *mut c_int,
            library_values: *mut *mut c_void,
            library_count: c_uint,
        );
        /// Looks a kernel up in a library.
        fn cuLibraryGetKernel(kernel: *mut CuKernel, library: CuLibrary, name: *const c_char);
        /// Makes a function, in the current context, of a library's kernel.
        fn cuKernelGetFunction(function: *mut CuFunction, kernel: CuKernel);
        /// Unloads a library.
        fn cuLibraryUnload(library: CuLibrary);
        /// Gives the primary context up by force.
        fn cuDevicePrimaryCtxReset_v2(device: CuDevice);
        /// Copies to the device in a stream's order.
        fn cuMemcpyHtoDAsync_v2(to: CuDevicePtr, from: *const c_void, bytes: usize, stream: CuStream);
        /// Copies from the device in a stream's order.
        fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CuDevicePtr, bytes: usize, stream: CuStream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_entry_point_that_is_missing_is_named() {
        unsafe extern "C" fn any() -> CuResult {
            0
        }
        let all_but_one = |name: &CStr| match name.to_bytes() {
            b"cuModuleUnload" => std::ptr::null_mut(),
            _ => any as *mut c_void,
        };
        // SAFETY: nothing of the table is called.
        let missing = unsafe { Entries::resolve(&all_but_one) }.unwrap_err();
        assert_eq!(missing, "cuModuleUnload");
    }

    #[test]
    fn an_optional_one_that_is_missing_is_none() {
        unsafe extern "C" fn any() -> CuResult {
            0
        }
        let lookup = |name: &CStr| match REQUIRED.contains(&name.to_str().unwrap()) {
            true => any as *mut c_void,
            false => std::ptr::null_mut(),
        };
        // SAFETY: nothing of the table is called.
        let entries = unsafe { Entries::resolve(&lookup) }.unwrap();
        assert!(entries.cuLibraryLoadData.is_none());
    }

    #[test]
    fn cust_is_never_handed_a_code_that_its_enum_lacks() {
        for code in [226, 36, 46, 402, 706, 721, 810, 812, 912, 915, -1, 100_100] {
            assert_eq!(for_cust(code), UNKNOWN, "{code}");
            assert_eq!(last_code(), code);
        }
        for code in [1, 4, 100, 209, 221, 224, 720, 809, 911, 999] {
            assert_eq!(for_cust(code), code);
        }
        assert_eq!(for_cust(0), 0);
    }

    #[test]
    fn cust_is_linked_against_this_list() {
        // Before a library is open every call answers "not initialised", through cust as well.
        let answer = cust::init(cust::CudaFlags::empty());
        assert_eq!(answer, Err(cust::error::CudaError::NotInitialized));
        assert_eq!(last_code(), NOT_INITIALIZED);
    }
}
