//! An image as a user names it: a file, read once, with what its bytes say.
//!
//! The bytes are read by the crate `cubin-image`; this room opens files, runs what makes or tries images in children of
//! their own, and puts what it learns into the tool's own words.

pub mod builtin;
pub mod bundle;
pub mod child;
pub mod compile;
mod file;
mod image;
pub mod inspection;
pub mod leash;
mod probe;
pub mod sources;
pub mod tools;
pub mod variants;

pub use file::{FileError, read_file};
pub use image::{Facts, Image, ImageProblem, USUAL_KERNEL, hex, read_cubin};
pub use probe::{ChildProbe, HostProbe, NoProbe, ProbeReport, ProbedCallback};
