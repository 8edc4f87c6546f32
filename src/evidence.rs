//! What was found in a child before it went: the shape that is written to disk and read by `verdict` and `report`.
//!
//! Plain data. What could not be taken stands in [`Evidence::soft_errors`], one line each: weaker evidence is still evidence.

use crate::journal::Snapshot;
use crate::vocabulary::Place;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the child was watched when this was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watch {
    /// Stopped and read through ptrace.
    Ptrace,
    /// ptrace was refused: a handler in the child wrote its registers down. The weaker kind.
    Handler,
    /// Not watched: only the wait status is known.
    Status,
}

/// Why the evidence was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Trigger {
    /// A signal was about to be delivered.
    Signal {
        /// Its number.
        signal: i32,
        /// `si_code`.
        si_code: i32,
        /// `si_addr`; none for signals that carry no address, or where the kernel does not know it (`SI_KERNEL`).
        address: Option<u64>,
        /// Who sent it, for `SI_USER`, `SI_TKILL` and the like.
        sender: Option<i32>,
    },
    /// A driver call did not return in time.
    Hang {
        /// How long the longest call has been open, ns.
        open_ns: u64,
    },
    /// The child is about to exit with this wait status.
    Exit {
        /// As from `waitpid`.
        status: i32,
    },
}

/// A mapped file (or the vdso) that holds code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// As in `/proc/pid/maps`.
    pub path: String,
    /// GNU build id, hex; none where the file carries none or could not be read.
    pub build_id: Option<String>,
    /// What has to be added to an address in the file to get the address in the process.
    pub bias: u64,
    /// First mapped address.
    pub start: u64,
    /// End of the last mapping.
    pub end: u64,
    /// What kind of module it is.
    pub place: Place,
}

/// How a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The thread's own registers.
    Registers,
    /// By call frame information.
    Cfi,
    /// By scanning the stack for a return address: a guess, at most one a stack.
    Scanned,
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Program counter (a return address for all but the innermost frame and those below a signal frame).
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Index into [`Evidence::modules`].
    pub module: Option<usize>,
    /// `pc` as an address in the module's file (build id and this name the place for ever).
    pub module_address: Option<u64>,
    /// Start of the function that covers `pc` by the module's unwind tables, as an address in its file.
    pub function: Option<u64>,
    /// Its symbol, where the module has one (an export's name only within 256 bytes).
    pub symbol: Option<String>,
    /// Where `pc` lies.
    pub place: Place,
    /// How it was found.
    pub found: Found,
    /// The frame of a signal handler's trampoline.
    pub signal_frame: bool,
}

/// One thread of the child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// `comm`.
    pub name: String,
    /// State letter as in `/proc/pid/task/tid/stat`, read before it was stopped.
    pub state: Option<char>,
    /// Kernel function that it waits in, read before it was stopped.
    pub wait_channel: Option<String>,
    /// System call number and its six arguments, where it is in one.
    pub syscall: Option<(i64, [u64; 6])>,
    /// General registers by name.
    pub registers: BTreeMap<String, u64>,
    /// Its stack, innermost first.
    pub frames: Vec<Frame>,
    /// Why the walk ended: `end of stack`, or what stood in the way.
    pub stack_end: String,
    /// Index of its record in the journal, where one names this tid.
    pub journal_thread: Option<usize>,
}

/// Bytes of the child's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// What they are: `pc`, `sp`, ...
    pub what: String,
    /// Address of the first.
    pub address: u64,
    /// Hex.
    pub hex: String,
}

/// What kind of address the fault address is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressClass {
    /// In the first 64 KiB.
    NullPage,
    /// A pattern that allocators write over freed or fresh memory.
    Poison,
    /// Not a canonical address (the kernel gives no address then).
    NonCanonical,
    /// Next to a thread's stack.
    StackGuard,
    /// Nothing is mapped there, and something executable was.
    WasExecutable,
    /// Nothing is mapped there.
    Unmapped,
    /// Mapped, but not for this access.
    Protected,
    /// Not known.
    Unknown,
}

/// The process as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFacts {
    /// Memory in use, bytes.
    pub resident_bytes: Option<u64>,
    /// The most that it was, bytes.
    pub peak_resident_bytes: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Signals that it has handlers for.
    pub signals_caught: Vec<i32>,
    /// Signals that it ignores.
    pub signals_ignored: Vec<i32>,
    /// Signals that have gained or lost a handler since the loop began; none where that is not known.
    pub handlers_changed: Option<Vec<i32>>,
}

/// A thread that waits for a mutex which another thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWait {
    /// The thread that waits.
    pub waiter: i32,
    /// Address of the mutex.
    pub lock: u64,
    /// The thread that holds it, by the mutex's own word.
    pub owner: i32,
}

/// An earlier fatal-looking signal of the same process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierSignal {
    /// When, ns on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Thread that it was delivered to.
    pub tid: i32,
    /// Its number.
    pub signal: i32,
    /// `si_code`.
    pub si_code: i32,
    /// Program counter at that time.
    pub pc: Option<u64>,
    /// Number of the evidence taken of it, where some was.
    pub evidence: Option<u32>,
}

/// A mapping that became executable, from the log of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutableMapping {
    /// Time, ns on the journal's clock (`CLOCK_MONOTONIC`).
    pub at_ns: u64,
    /// Thread that made it.
    pub tid: i32,
    /// First address.
    pub start: u64,
    /// Length, bytes.
    pub length: u64,
    /// File's name, or `//anon`.
    pub name: String,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Shape of this record: `cubin-stress/evidence/1`.
    pub schema: String,
    /// How the child was watched.
    pub watch: Watch,
    /// Why this was taken.
    pub trigger: Trigger,
    /// The child.
    pub pid: i32,
    /// Thread that faulted, or whose call hangs longest.
    pub tid: Option<i32>,
    /// When, ns on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Where the program counter of that thread lies.
    pub place: Place,
    /// How the place is known, in words, where that is not plain from the maps.
    pub place_note: Option<String>,
    /// What kind of address the fault address is.
    pub address_class: AddressClass,
    /// All threads.
    pub threads: Vec<Thread>,
    /// All modules.
    pub modules: Vec<Module>,
    /// Memory at and around pc and sp of the faulting thread.
    pub memory: Vec<Bytes>,
    /// Executable mappings since the child's start that matter here: those that cover pc or a frame.
    pub executable_mappings: Vec<ExecutableMapping>,
    /// The journal at that moment.
    pub journal: Option<Snapshot>,
    /// Last lines of the child's stderr.
    pub stderr_tail: String,
    /// What could not be taken, one line each.
    pub soft_errors: Vec<String>,
    /// Its number in the trial, from 0.
    #[serde(default)]
    pub number: u32,
    /// Number of the evidence of which this is a consequence: the hang of a handler that an earlier signal called, or a
    /// second thread that faulted at the same standstill.
    #[serde(default)]
    pub follows: Option<u32>,
    /// Exit status that hides the signal: the process left from its own handler with it.
    #[serde(default)]
    pub masked_as: Option<i32>,
    /// What makes the fault address that kind of address, in words.
    #[serde(default)]
    pub address_note: Option<String>,
    /// The instruction at pc, in words.
    #[serde(default)]
    pub instruction: Option<String>,
    /// The process as a whole.
    #[serde(default)]
    pub process: ProcessFacts,
    /// Who waits for whose mutex.
    #[serde(default)]
    pub locks: Vec<LockWait>,
    /// Fatal-looking signals of this process before this one.
    #[serde(default)]
    pub earlier_signals: Vec<EarlierSignal>,
    /// Whether the process was stopped by a stop signal.
    #[serde(default)]
    pub paused_by: Option<i32>,
    /// File name of the core beside this record, where one was asked for.
    #[serde(default)]
    pub core: Option<String>,
}
