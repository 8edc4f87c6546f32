//! Stands in for the crates.io package of this name, which fails the build where no CUDA toolkit is installed.
//!
//! `cust_raw`'s build script calls [`include_cuda`] to find `libcuda` and link it. This project opens the driver at run
//! time instead (`src/driver`), so there is nothing to find.

/// Would print the linker's search path and `-lcuda`; here the driver is not linked.
pub fn include_cuda() {}
