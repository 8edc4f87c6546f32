//! The results directory: written ahead, read back.
//!
//! A run is a folder: `run.json` (the header), `images/` (the bytes that were loaded), `faults/` (evidence, one file a fault,
//! written while the child still stands), `calls/` (every call, with `--journal full`), `trials.jsonl` (a line a trial), `end.json`, and what `report` makes of these.
//! Everything is synced before the next step, so that a killed supervisor or a full disk loses at most the trial in flight.

mod folder;
mod read;
mod record;
#[cfg(test)]
pub mod tests;

pub use folder::{RunFolder, StoreError, calls_file};
pub use read::{RunData, read, resolve};
pub use record::{CallStats, Device, Driver, FaultRecord, Host, Image, RUN_SCHEMA, RunEnd, RunHeader};
pub use record::{TrialEnd, TrialRecord};
