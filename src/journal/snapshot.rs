//! What the reader makes of a journal: plain data, times in ns on `CLOCK_MONOTONIC`.

use crate::vocabulary::Call;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the journal's times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processor's time stamp counter, converted.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
}

/// A finished call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its number in this thread, from 0.
    pub index: u64,
    /// Which call.
    pub call: Call,
    /// Module serial (unique in the child, 0 where no module is concerned).
    pub module: u64,
    /// Entered at, ns.
    pub enter_ns: u64,
    /// Left at, ns.
    pub leave_ns: u64,
    /// The driver's answer.
    pub result: i32,
}

/// A call that was entered and not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Which call.
    pub call: Call,
    /// Module serial, 0 where no module is concerned.
    pub module: u64,
    /// Entered at, ns.
    pub entered_ns: u64,
}

/// Totals of one call over one thread or many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTotals {
    /// Calls finished.
    pub count: u64,
    /// Of these, answers other than success.
    pub errors: u64,
}

/// One thread's part of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSnapshot {
    /// Thread id in the child; 0: it has not begun.
    pub tid: i32,
    /// The call that it is in.
    pub in_flight: Option<InFlight>,
    /// Last calls, oldest first.
    pub last: Vec<CallRecord>,
    /// Totals by call.
    pub totals: BTreeMap<Call, CallTotals>,
    /// Rounds of the loop finished.
    pub rounds: u64,
    /// Modules that it keeps loaded.
    pub kept: u64,
    /// Calls that it made while the journal was frozen.
    #[serde(default)]
    pub unrecorded: u64,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The worker could not begin: driver, device or context.
    SetupFailed,
    /// The plan does not fit the image (kernel absent, ...).
    BadPlan,
    /// A driver call answered with an error: the first of its code in this thread.
    ApiError,
    /// Results differ from what the kernel must compute.
    WrongResult,
    /// Something worth telling.
    Info,
}

/// Something that the worker wrote down in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// Index of the thread, from 0; none: the worker's main thread.
    pub thread: Option<usize>,
    /// The call concerned.
    pub call: Option<Call>,
    /// The driver's code; 0 where none is concerned.
    pub code: i32,
    /// Module serial, 0 where none is concerned.
    pub module: u64,
    /// Modules loaded in this child at that time.
    pub live_modules: u64,
    /// When, ns.
    pub at_ns: u64,
    /// In words (at most some 400 bytes; cut at the end).
    pub text: String,
}

/// A journal, read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where times come from.
    pub clock: ClockSource,
    /// When it was read, ns.
    pub read_ns: u64,
    /// When the worker's loop began, ns; none: not yet.
    pub began_ns: Option<u64>,
    /// Whether the worker said that it had finished its order.
    pub finished: bool,
    /// The workload's threads in their order, then the worker's main thread.
    pub threads: Vec<ThreadSnapshot>,
    /// What it wrote down in words, in order.
    pub notes: Vec<Note>,
    /// What could not be read or made no sense, one line each.
    pub soft_errors: Vec<String>,
}
