//! The simulated CUDA driver: a laboratory in which every fault has a known owner.
//!
//! It is not a mock: it reads images by the driver's rules, really links and calls the x86-64 host object of a Tile image,
//! keeps contexts, streams, modules and functions, and computes what the add kernel computes. What it plants on purpose
//! stands in `bugs`, chosen by `CUDA_SIM_BUG`; `CUDA_SIM_PROFILE` says how long calls take, `CUDA_SIM_DEVICE` which
//! architecture is simulated. `crates/cuda-sim-so` makes a `libcuda.so.1` of it.

mod bugs;
mod context;
mod device;
mod driver;
mod entry;
mod error;
mod handle;
mod host_object;
mod image;
mod kernels;
mod latency;
mod launch;
mod library;
mod lock;
mod memory;
mod module;
mod profile;
mod queue;
mod random;
mod settings;
mod stream;
mod threads;
mod wait;

pub mod catalogue;

pub use driver::FILE_VERSION;
