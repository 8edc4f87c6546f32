//! Programs that no one wrote for the simulated driver run on it: C++ linked with `-lcuda`, and NVIDIA's Python bindings.
//! Planted bugs do what they say, each made certain by `force=1`.

mod attribution;
mod bindings;
mod environment;
mod exits;
mod program;
mod races;
mod report;
