//! What to do: plain data, TOML and JSON in and out. Knows nothing but the vocabulary.
//!
//! A [`Workload`] says what one child does with one image; an [`Order`] is what a child is handed: one workload, its image,
//! the driver to open, for how long, with which seed.

mod order;
mod run;
mod script;
mod workload;

pub use order::{DriverKind, Order, SimSettings};
pub use run::{Arm, DriverChoice, JournalKind, Observe, RESOURCES, ResourceLimit, RunPlan};
pub use script::{Expect, Op, OpCall};
pub use workload::{ApiStyle, Argument, ContextKind, Dim3, LockKind, Spread, Steering, SyncPlace, Verify, Workload};
