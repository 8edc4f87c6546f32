//! What people and programs see of a run: one file a format. Everything here is made from the run's folder alone.

mod build;
mod export;
mod hlog;
pub mod live;
pub mod summary;
mod text;
pub mod timeline;
mod trace;

pub use build::summary;
pub use export::Export;
pub use hlog::hlog;
pub use text::text;
pub use trace::trace;
