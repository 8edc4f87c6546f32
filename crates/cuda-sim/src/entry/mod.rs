//! The C interface: one file a family of entry points. Each entry does no more than turn C arguments into the driver's own
//! and back.
#![allow(unsafe_code)] // this is the C interface
#![allow(non_snake_case)] // the names are CUDA's

mod context;
mod device;
mod error;
mod event;
mod function;
mod init;
mod launch;
mod library;
mod memory;
mod module;
pub mod proc_address;
mod stream;

/// An entry point as `cuGetProcAddress` knows it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name without a version suffix.
    pub base: &'static str,
    /// The CUDA version from which this one answers to that name: 12040 for 12.4.
    pub since: i32,
    /// The exported symbol.
    pub symbol: &'static str,
    /// Where it is.
    pub address: *const (),
}

// SAFETY: the address is that of a function.
unsafe impl Sync for Entry {}

/// Defines entry points and a table of them. A body is unsafe code on behalf of the C caller, ends with `Ok(())`, and is
/// not run once the exit handlers have torn the driver down.
macro_rules! entries {
    ($($(#[$meta:meta])* $symbol:ident = $base:literal since $since:literal ($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $(
            $(#[$meta])*
            #[allow(unused_unsafe)] // not every body does something unsafe
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $symbol($($argument: $type),*) -> std::ffi::c_int {
                if $crate::driver::torn_down() {
                    return $crate::error::Code::DEINITIALIZED.0;
                }
                // SAFETY: whoever calls a C function vouches for the pointers and handles that it passes.
                let run = move || -> $crate::error::Answer { unsafe { $body } };
                $crate::error::Code::of(run())
            }
        )+
        /// The entry points of this file.
        pub(super) const TABLE: &[super::Entry] = &[
            $(super::Entry { base: $base, since: $since, symbol: stringify!($symbol), address: $symbol as *const () }),+
        ];
    };
}
pub(crate) use entries;

/// Writes an answer; a null address is an invalid argument, a bad one faults here.
///
/// # Safety
/// The address must be null or good for a write.
unsafe fn put<T>(out: *mut T, value: T) -> crate::error::Answer {
    if out.is_null() {
        return Err(crate::error::Code::INVALID_VALUE);
    }
    // SAFETY: by the caller; volatile, so that the store stays here.
    unsafe { out.write_volatile(value) };
    Ok(())
}

/// Writes text with its NUL into a buffer of `len` bytes, cut where it is too long.
///
/// # Safety
/// The buffer must be as large as said.
unsafe fn put_text(out: *mut std::ffi::c_char, len: std::ffi::c_int, text: &str) -> crate::error::Answer {
    if out.is_null() || len < 1 {
        return Err(crate::error::Code::INVALID_VALUE);
    }
    let kept = text.len().min(len as usize - 1);
    // SAFETY: by the caller.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast::<u8>(), kept);
        out.add(kept).write(0);
    }
    Ok(())
}
