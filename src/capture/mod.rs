//! Evidence of a dead or hung process, taken from outside: registers, maps, memory, stacks, symbols.
//!
//! May read `/proc` and the memory of a stopped child; never loads the driver, never decides whose fault anything is.

mod address;
mod core_file;
mod core_memory;
mod exec_log;
mod host;
#[cfg(test)]
mod hostile;
mod image;
mod locks;
mod maps;
mod memory;
mod modules;
pub mod place;
pub mod process;
mod registers;
mod stacks;
mod symbols;
mod unwind;

pub use crate::evidence;
pub use core_file::write_core;
pub use exec_log::ExecLog;
pub use host::HostCode;
pub use modules::ModuleCache;
pub use process::{Before, before_stop};
pub use symbols::demangle;

use crate::evidence::{AddressClass, Bytes, Evidence, ProcessFacts, Thread, Trigger, Watch};
use crate::journal::{LastWords, Snapshot, monotonic_ns};
use crate::vocabulary::Place;
use memory::Memory;
use registers::Registers;
use stacks::Stacks;
use std::collections::BTreeMap;

/// Schema of a record of evidence.
pub const SCHEMA: &str = "cubin-stress/evidence/1";

/// A process that stands still, and why it is looked at.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The process.
    pub pid: i32,
    /// The thread that it is about.
    pub tid: Option<i32>,
    /// Why.
    pub trigger: Trigger,
    /// How it is watched.
    pub watch: Watch,
    /// What a handler in the process wrote down, where it may not be traced.
    pub written: Option<LastWords>,
    /// Threads that stand still under this thread's tracing.
    pub standing: &'a [i32],
    /// What was read of the threads before they were stopped.
    pub before: BTreeMap<i32, Before>,
    /// The journal, where it is this process's.
    pub journal: Option<Snapshot>,
    /// Tail of its stderr.
    pub stderr_tail: String,
    /// What stood in the way so far.
    pub soft_errors: Vec<String>,
}

/// What is known beforehand of what a child may run.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Names of files.
    pub known: place::Known,
    /// Host code of the images that it is handed.
    pub hosts: Vec<HostCode>,
    /// Files read so far.
    pub modules: ModuleCache,
}

/// The registers of a thread that stands still; none where they cannot be read.
pub fn registers_by_name(tid: i32) -> BTreeMap<String, u64> {
    Registers::read(tid).map(|registers| registers.named()).unwrap_or_default()
}

/// Whether a thread that stands at its exit takes its whole process with it by its own will.
pub fn leaves_its_process(tid: i32) -> bool {
    Registers::read(tid).is_ok_and(|registers| registers.syscall() == libc::SYS_exit_group)
}

/// What is known of a process that is gone: why, its journal, its stderr.
pub fn bare(moment: Moment<'_>) -> Evidence {
    let Moment { pid, tid, trigger, watch, journal, stderr_tail, soft_errors, .. } = moment;
    Evidence {
        schema: SCHEMA.to_owned(),
        watch,
        trigger,
        pid,
        tid,
        at_ns: monotonic_ns(),
        place: Place::Unmapped,
        place_note: Some("no program counter is known".to_owned()),
        address_class: AddressClass::Unknown,
        threads: Vec::new(),
        modules: Vec::new(),
        memory: Vec::new(),
        executable_mappings: Vec::new(),
        journal,
        stderr_tail,
        soft_errors,
        number: 0,
        follows: None,
        masked_as: None,
        address_note: None,
        instruction: None,
        process: ProcessFacts::default(),
        locks: Vec::new(),
        earlier_signals: Vec::new(),
        paused_by: None,
        core: None,
    }
}

/// Takes all that can be taken. Never fails: what could not be taken is said in the evidence.
pub fn capture(moment: Moment<'_>, around: &Surroundings, log: Option<&ExecLog>) -> Evidence {
    let pid = moment.pid;
    let (standing, before, written) = (moment.standing, moment.before.clone(), moment.written);
    let mut evidence = bare(moment);
    // A leader that ended before its threads has no memory any more: ask through a thread that has.
    let through = evidence.tid.or(standing.first().copied()).unwrap_or(pid);
    let memory = Memory::of(through);
    let mut stacks = Stacks::new(pid, through, &memory, around, log);
    let mut faulting = None;
    for tid in process::threads_of(pid) {
        let registers = match written {
            Some(words) if words.tid == tid => Some(Registers::written(&words.registers)),
            _ => registers_of(tid, standing, &mut stacks.soft_errors),
        };
        evidence.threads.push(thread(&mut stacks, tid, registers.as_ref(), &before, evidence.journal.as_ref()));
        if written.is_some_and(|words| words.tid == tid) {
            let known = |name: &String| !["fs_base", "gs_base", "orig_rax"].contains(&name.as_str());
            evidence.threads.last_mut().into_iter().for_each(|thread| thread.registers.retain(|name, _| known(name)));
        }
        if Some(tid) == evidence.tid {
            faulting = registers;
        }
    }
    if let Some(registers) = faulting {
        (evidence.place, evidence.place_note) = stacks.place_and_note(registers.pc());
        fetched_from_nowhere(&mut evidence, registers.pc());
        evidence.memory = around_pc_and_sp(&memory, &registers);
        let found = stacks.judge_address(&evidence.trigger, &registers);
        (evidence.address_class, evidence.address_note, evidence.instruction) =
            (found.class, found.note, found.instruction);
    }
    evidence.locks = locks::waits(&evidence.threads, &memory);
    let frames = evidence.threads.iter().flat_map(|thread| &thread.frames);
    evidence.executable_mappings = stacks.logged(frames.map(|frame| frame.pc));
    let (modules, soft_errors) = stacks.finish();
    evidence.modules = modules;
    evidence.soft_errors.extend(soft_errors);
    evidence.process = process::facts_of(through).unwrap_or_default();
    evidence
}

/// An instruction that could not be fetched because nothing was mapped at pc (SEGV_MAPERR): if host code is there by now,
/// another thread has mapped it since. The code that stands there cannot have faulted.
fn fetched_from_nowhere(evidence: &mut Evidence, pc: u64) {
    const SEGV_MAPERR: i32 = 1;
    let fetch = Trigger::Signal { signal: libc::SIGSEGV, si_code: SEGV_MAPERR, address: Some(pc), sender: None };
    if evidence.trigger == fetch && evidence.place == Place::HostObject {
        evidence.place = Place::HostObjectUnmapped;
        let now = evidence.place_note.take().unwrap_or_default();
        evidence.place_note = Some(format!(
            "nothing was mapped at pc when it was fetched; host code was mapped there again since: {now}"
        ));
    }
}

fn registers_of(tid: i32, standing: &[i32], soft_errors: &mut Vec<String>) -> Option<Registers> {
    if !standing.contains(&tid) {
        return None;
    }
    match Registers::read(tid) {
        Ok(registers) => Some(registers),
        Err(error) => {
            soft_errors.push(format!("registers of thread {tid}: {error}"));
            None
        }
    }
}

fn thread(
    stacks: &mut Stacks<'_>,
    tid: i32,
    registers: Option<&Registers>,
    before: &BTreeMap<i32, Before>,
    journal: Option<&Snapshot>,
) -> Thread {
    let earlier = before.get(&tid);
    let (frames, stack_end) = match registers {
        Some(registers) => stacks.walk(registers),
        None => (Vec::new(), "registers not known".to_owned()),
    };
    Thread {
        tid,
        name: process::name_of(stacks.pid(), tid),
        state: earlier.and_then(|earlier| earlier.state),
        wait_channel: earlier.and_then(|earlier| earlier.wait_channel.clone()),
        syscall: process::syscall_of(stacks.pid(), tid),
        registers: registers.map(Registers::named).unwrap_or_default(),
        frames,
        stack_end,
        journal_thread: journal.and_then(|journal| journal.threads.iter().position(|thread| thread.tid == tid)),
    }
}

/// The bytes around the program counter and above the stack pointer.
fn around_pc_and_sp(memory: &Memory, registers: &Registers) -> Vec<Bytes> {
    let parts = [("pc", registers.pc().saturating_sub(64), 128), ("sp", registers.sp(), 512)];
    let read = parts.into_iter().map(|(what, address, length)| (what, address, memory.bytes(address, length)));
    let found = read.filter(|(_, _, bytes)| !bytes.is_empty());
    found.map(|(what, address, bytes)| Bytes { what: what.to_owned(), address, hex: image::hex(&bytes) }).collect()
}
