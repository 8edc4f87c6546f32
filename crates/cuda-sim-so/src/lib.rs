//! Makes a `libcuda.so.1` of [`cuda_sim`].
//!
//! Built as a shared object and as a Rust library at once: the library tells the tool's build script the stamp by which it
//! knows its own shared object among others.

pub use cuda_sim::*;

/// Unlike that of any other build of this crate.
pub const STAMP: &str = env!("CUDA_SIM_STAMP");

/// The stamp as an exported symbol, by which anyone knows a simulated driver, whatever its file is called.
#[used]
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // a C symbol
pub static cuda_sim_stamp: [u8; STAMP.len()] = match STAMP.as_bytes().first_chunk() {
    Some(bytes) => *bytes,
    None => panic!("the stamp has its own length"),
};
