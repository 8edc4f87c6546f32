//! Makes a `libcuda.so.1` of [`cuda_sim`].

pub use cuda_sim::*;
