//! What people and programs see of a run: one file a format. Everything here is made from the run's folder alone.

mod build;
pub mod live;
pub mod summary;
mod text;

pub use build::summary;
pub use text::text;
