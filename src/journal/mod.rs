//! The shared memory in which a child writes down what it does, and which survives its death.
//!
//! `layout.rs` is the format, `writer.rs` the worker's side, `reader.rs` the supervisor's. The reader treats every byte as
//! hostile.

mod snapshot;

pub use snapshot::{CallRecord, CallTotals, ClockSource, InFlight, Note, NoteKind, Snapshot, ThreadSnapshot};
