//! What the rules look at: the few facts of a fault that an owner can follow from.

use super::contract::{self, Violation};
use crate::evidence::{AddressClass, Evidence, Found, Frame, Trigger, Watch};
use crate::journal::{Note, NoteKind, Snapshot};
use crate::plan::Workload;
use crate::vocabulary::{Call, Kind, Phase, Place};
use serde::{Deserialize, Serialize};

/// What the journal says of how the driver was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalWord {
    /// It could be read, and every call in it was legal.
    Legal,
    /// It could be read, and a call in it was not.
    Broken,
    /// It could not be read, or there is none.
    Unreadable,
}

/// The facts of one fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// What kind of fault.
    pub kind: Kind,
    /// What the process was doing.
    pub phase: Phase,
    /// How the child was watched.
    pub watch: Watch,
    /// The signal's number.
    pub signal: Option<i32>,
    /// `si_code`.
    pub si_code: Option<i32>,
    /// Process that sent the signal, where one did.
    pub sender: Option<i32>,
    /// Another process sent the signal.
    #[serde(default)]
    pub sent_from_outside: bool,
    /// The stop signal that the child stood at, where it did.
    #[serde(default)]
    pub stopped_by: Option<i32>,
    /// The fault address.
    pub fault_address: Option<u64>,
    /// Its class.
    pub address_class: AddressClass,
    /// The driver call in flight in the faulting thread.
    pub call: Option<Call>,
    /// The module that this call concerns (serial, 0 for none).
    pub module_serial: u64,
    /// Calls in flight in the other threads, with the module that each concerns.
    pub others: Vec<(Call, u64)>,
    /// The driver's code.
    pub code: Option<i32>,
    /// The faulting thread's index in the journal.
    pub thread: Option<usize>,
    /// Whether that thread is one of the worker's own.
    pub own_thread: bool,
    /// Where the program counter lies.
    pub place: Option<Place>,
    /// How that is known.
    pub place_note: Option<String>,
    /// The module that holds it.
    pub module: Option<String>,
    /// Program counter as an address in that module.
    pub offset: Option<u64>,
    /// Start of the covering function, likewise.
    pub function: Option<u64>,
    /// Its build id.
    pub build_id: Option<String>,
    /// Places of the frames, innermost first, repeats folded.
    pub stack: Vec<Place>,
    /// Whether the stack was walked to its end.
    pub stack_whole: bool,
    /// What the journal says.
    pub journal: JournalWord,
    /// The call that broke the contract.
    pub violation: Option<Violation>,
    /// The allocator's last words on stderr.
    pub heap_message: Option<String>,
    /// Whether the image carries host code of the Tile IR compiler.
    pub tile: bool,
    /// Modules loaded in the child at that time, where known.
    pub live_modules: Option<u64>,
    /// The worker's own words.
    pub note: Option<String>,
}

impl Facts {
    /// Whether another thread was unloading another module.
    pub fn unload_beside(&self) -> bool {
        self.others.iter().any(|&(call, module)| call.phase() == Phase::Unload && module != self.module_serial)
    }

    /// The outermost place below the faulting frame that is not the same place: who called in.
    pub fn caller(&self) -> Option<Place> {
        self.stack.get(1).copied()
    }
}

/// The facts of a crash or a hang.
pub fn of_evidence(evidence: &Evidence, tile: bool, workload: &Workload) -> Facts {
    let thread = evidence.tid.and_then(|tid| evidence.threads.iter().find(|t| t.tid == tid));
    let frames = thread.map_or(&[][..], |t| &t.frames);
    let journal = evidence.journal.as_ref();
    let index = faulting_index(evidence);
    let in_flight = index.and_then(|i| journal?.threads.get(i)?.in_flight);
    let module_serial = in_flight.map_or(0, |f| f.module);
    let (kind, signal, si_code, sender, fault_address) = match evidence.trigger {
        Trigger::Signal { signal, si_code, address, sender } => {
            (Kind::Crash, Some(signal), Some(si_code), sender, address)
        }
        Trigger::Hang { .. } => (Kind::Hang, None, None, None, None),
        Trigger::Exit { status } => {
            (Kind::Crash, libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)), None, None, None)
        }
    };
    let at = frames.first().and_then(|f| Some((f, evidence.modules.get(f.module?)?)));
    let (journal_word, violation) = journal_word(journal, workload);
    Facts {
        kind,
        phase: phase(in_flight.map(|f| f.call), journal, frames),
        watch: evidence.watch,
        signal,
        si_code,
        sender,
        sent_from_outside: sender.is_some_and(|sender| sender != evidence.pid),
        stopped_by: evidence.paused_by,
        fault_address,
        address_class: evidence.address_class.clone(),
        call: in_flight.map(|f| f.call),
        module_serial,
        others: others_in_flight(journal, index),
        code: None,
        thread: index,
        own_thread: index.is_some() || evidence.tid == Some(evidence.pid),
        place: Some(evidence.place),
        place_note: evidence.place_note.clone(),
        module: at.map(|(_, m)| m.path.clone()),
        offset: at.and_then(|(f, _)| f.module_address),
        function: at.and_then(|(f, _)| f.function),
        build_id: at.and_then(|(_, m)| m.build_id.clone()),
        stack: stack_places(evidence.place, frames),
        stack_whole: thread.is_some_and(|t| t.stack_end.starts_with("end of stack")),
        journal: journal_word,
        violation,
        heap_message: heap_message(&evidence.stderr_tail),
        tile,
        live_modules: None,
        note: None,
    }
}

/// The facts of something that the worker wrote down: an error of the driver, or a wrong result.
pub fn of_note(note: &Note, journal: Option<&Snapshot>, tile: bool, workload: &Workload) -> Facts {
    let (journal_word, violation) = journal_word(journal, workload);
    let call = note.call;
    let kind = if note.kind == NoteKind::WrongResult { Kind::WrongResult } else { Kind::ApiError };
    Facts {
        kind,
        phase: call.map_or(Phase::Startup, |c| if kind == Kind::WrongResult { Phase::Launch } else { c.phase() }),
        watch: Watch::Status,
        signal: None,
        si_code: None,
        sender: None,
        sent_from_outside: false,
        stopped_by: None,
        fault_address: None,
        address_class: AddressClass::Unknown,
        call,
        module_serial: note.module,
        others: Vec::new(),
        code: (note.code != 0).then_some(note.code),
        thread: note.thread,
        own_thread: true,
        place: None,
        place_note: None,
        module: None,
        offset: None,
        function: None,
        build_id: None,
        stack: Vec::new(),
        stack_whole: false,
        journal: journal_word,
        violation,
        heap_message: None,
        tile,
        live_modules: Some(note.live_modules),
        note: Some(note.text.clone()),
    }
}

fn faulting_index(evidence: &Evidence) -> Option<usize> {
    let tid = evidence.tid?;
    let by_record = evidence.threads.iter().find(|t| t.tid == tid).and_then(|t| t.journal_thread);
    by_record.or_else(|| evidence.journal.as_ref()?.threads.iter().position(|t| t.tid == tid))
}

fn journal_word(journal: Option<&Snapshot>, workload: &Workload) -> (JournalWord, Option<Violation>) {
    let Some(journal) = journal.filter(|j| !j.soft_errors.iter().any(|e| e.contains("unreadable"))) else {
        return (JournalWord::Unreadable, None);
    };
    match contract::check(journal, workload) {
        Some(violation) => (JournalWord::Broken, Some(violation)),
        None => (JournalWord::Legal, None),
    }
}

fn others_in_flight(journal: Option<&Snapshot>, but: Option<usize>) -> Vec<(Call, u64)> {
    let threads = journal.map_or(&[][..], |j| &j.threads);
    let others = threads.iter().enumerate().filter(|(i, _)| Some(*i) != but);
    others.filter_map(|(_, t)| t.in_flight.map(|f| (f.call, f.module))).collect()
}

fn phase(call: Option<Call>, journal: Option<&Snapshot>, frames: &[Frame]) -> Phase {
    let named = |name: &str| frames.iter().any(|f| f.symbol.as_deref() == Some(name));
    if let Some(call) = call {
        return call.phase();
    }
    if named("__call_tls_dtors") {
        return Phase::TlsDestructor;
    }
    if named("exit") || named("__run_exit_handlers") {
        let through_loader = frames.iter().any(|f| f.place == Place::Loader);
        return if through_loader { Phase::LibraryFini } else { Phase::ExitHandler };
    }
    match journal {
        Some(j) if j.began_ns.is_none() => Phase::Startup,
        _ => Phase::Main,
    }
}

fn stack_places(place: Place, frames: &[Frame]) -> Vec<Place> {
    let mut places = vec![place];
    for frame in frames.iter().skip(1).filter(|f| f.found != Found::Registers) {
        if places.last() != Some(&frame.place) {
            places.push(frame.place);
        }
    }
    places
}

/// The allocator's own words in the last lines of stderr (glibc's `malloc_printerr` texts).
fn heap_message(stderr: &str) -> Option<String> {
    const WORDS: [&str; 9] = [
        "malloc():",
        "free():",
        "realloc():",
        "munmap_chunk():",
        "malloc_consolidate():",
        "double free or corruption",
        "corrupted size vs. prev_size",
        "corrupted double-linked list",
        "corrupted unsorted chunks",
    ];
    stderr.lines().rev().find(|line| WORDS.iter().any(|word| line.contains(word))).map(str::to_owned)
}
