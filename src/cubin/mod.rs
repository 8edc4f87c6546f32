//! An image as a user names it: a file, read once, with what its bytes say.
//!
//! The bytes are read by the crate `cubin-image`; this room opens files and puts what they hold into the tool's own words.

mod file;
mod image;

pub use file::{FileError, read_file};
pub use image::{Image, ImageProblem};
