//! The shared memory in which a child writes down what it does, and which survives its death.
//!
//! `layout.rs` is the format, `writer.rs` and `notes.rs` the worker's side, `create.rs`, `reader.rs`, `totals.rs`,
//! `window.rs` and `call_log.rs` the
//! supervisor's. The reader treats every byte as hostile. The worker's main thread has a record of its own: in snapshots and
//! in [`Progress`] it is the last thread.

mod call_log;
mod clock;
mod create;
mod last_words;
mod latency;
mod layout;
mod notes;
mod reader;
mod snapshot;
mod totals;
mod window;
mod writer;

pub use call_log::{CallBlock, CallBlocks, CallLog, CallLogEnd, FULL_RING, read_calls};
pub use clock::monotonic_ns;
pub use create::{Journal, JournalSpec};
pub use last_words::{DeathBed, GATE_OPEN, GATE_UNTRACED, LastWords, REGISTERS};
pub use latency::{HIGHEST_NS, HotCall, SIGNIFICANT_DIGITS, empty_histogram};
pub use reader::{Progress, ThreadProgress};
pub use snapshot::{CallRecord, CallTotals, ClockSource, InFlight, Note, NoteKind, Snapshot, ThreadSnapshot};
pub use totals::Totals;
pub use window::CallWindow;
pub use writer::{Entered, JournalWriter, ThreadWriter};

#[cfg(test)]
mod tests;
