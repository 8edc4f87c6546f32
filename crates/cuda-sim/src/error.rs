//! Result codes: number, name and text of every code that this driver can answer.

use std::ffi::{CStr, c_int};

/// A `CUresult` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub c_int);

/// What a call answers.
pub type Answer<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($constant:ident = $number:literal, $text:literal;)+) => {
        #[allow(dead_code)]
        impl Code { $(pub const $constant: Code = Code($number);)+ }
        /// Number, name and text, in the order of the numbers.
        const CODES: &[(c_int, &str, &str)] = &[
            (0, "CUDA_SUCCESS\0", "no error\0"),
            $(($number, concat!("CUDA_ERROR_", stringify!($constant), "\0"), concat!($text, "\0")),)+
        ];
    };
}

codes! {
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    DEINITIALIZED = 4, "driver shutting down";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_IMAGE = 200, "device kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid device context";
    NO_BINARY_FOR_GPU = 209, "no kernel image is available for execution on the device";
    INVALID_PTX = 218, "a PTX JIT compilation failed";
    JIT_COMPILER_NOT_FOUND = 221, "JIT compiler library not found";
    UNSUPPORTED_PTX_VERSION = 222, "the provided PTX was compiled with an unsupported toolchain";
    INVALID_SOURCE = 300, "device kernel image is invalid";
    FILE_NOT_FOUND = 301, "file not found";
    INVALID_HANDLE = 400, "invalid resource handle";
    ILLEGAL_STATE = 401, "the operation cannot be performed in the present state";
    NOT_FOUND = 500, "named symbol not found";
    NOT_READY = 600, "device not ready";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    PRIMARY_CONTEXT_ACTIVE = 708, "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, "context is destroyed";
    MISALIGNED_ADDRESS = 716, "misaligned address";
    LAUNCH_FAILED = 719, "unspecified launch failure";
    NOT_PERMITTED = 800, "operation not permitted";
    NOT_SUPPORTED = 801, "operation not supported";
    UNKNOWN = 999, "unknown error";
}

impl Code {
    /// The number that goes over the C interface.
    pub fn of(answer: Answer) -> c_int {
        match answer {
            Ok(()) => 0,
            Err(code) => code.0,
        }
    }
}

fn find(number: c_int) -> Option<&'static (c_int, &'static str, &'static str)> {
    CODES.binary_search_by_key(&number, |entry| entry.0).ok().map(|at| &CODES[at])
}

fn c_text(text: &'static str) -> Option<&'static CStr> {
    CStr::from_bytes_with_nul(text.as_bytes()).ok()
}

/// The name of a code, such as `CUDA_ERROR_INVALID_VALUE`; none where the number is not a code.
pub fn name(number: c_int) -> Option<&'static CStr> {
    find(number).and_then(|entry| c_text(entry.1))
}

/// What a code means, in one short phrase.
pub fn text(number: c_int) -> Option<&'static CStr> {
    find(number).and_then(|entry| c_text(entry.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_name_and_text() {
        assert!(CODES.is_sorted_by_key(|entry| entry.0), "look-up is by bisection");
        for &(number, ..) in CODES {
            assert!(name(number).is_some() && text(number).is_some(), "{number}");
        }
        assert_eq!(name(716).unwrap(), c"CUDA_ERROR_MISALIGNED_ADDRESS");
        assert!(name(12345).is_none());
    }
}
