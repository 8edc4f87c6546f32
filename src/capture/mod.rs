//! Evidence of a dead or hung process, taken from outside: registers, maps, memory, stacks, symbols.
//!
//! May read `/proc` and the memory of a stopped child; never loads the driver, never decides whose fault anything is.

pub use crate::evidence;
