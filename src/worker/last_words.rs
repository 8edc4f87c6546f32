//! The handler of last resort: where the supervisor may not trace this process, a fatal signal's registers are written into
//! the journal from here, and the thread waits until the supervisor has looked. Then the signal does what it would have done.
//!
//! Everything in the handler is async-signal-safe. It runs on the alternate stack that Rust's runtime gives each of its
//! threads; a thread of the driver's own has none, and a stack overflow there goes unseen.

use crate::journal::{DeathBed, JournalWriter, LastWords};
use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Signals that end a process by what it did.
const FATAL: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP, libc::SIGSYS];
/// How often a waiting thread looks, and how many looks it takes before it gives up on a supervisor that is gone: 10 s.
const GLANCE_NS: i64 = 1_000_000;
const GLANCES: u32 = 10_000;

static BED: OnceLock<DeathBed> = OnceLock::new();

/// Installs the handler. Before any other thread runs.
pub(super) fn install(journal: &JournalWriter) {
    if BED.set(journal.death_bed()).is_err() {
        return;
    }
    for signal in FATAL {
        // SAFETY: a zeroed sigaction is a valid one; its fields are set below.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler has the signature that SA_SIGINFO asks for, and does only what a handler may do.
        unsafe { libc::sigaction(signal, &action, null_mut()) };
    }
}

extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo and, with SA_SIGINFO, a ucontext.
    let (info, context) = unsafe { (&*info, &*context.cast::<libc::ucontext_t>()) };
    if let Some(bed) = BED.get() {
        // SAFETY: which of the fields means something is the reader's to judge by the code; all are plain numbers.
        let (address, sender) = unsafe { (info.si_addr() as u64, info.si_pid()) };
        // SAFETY: gettid has no preconditions.
        let tid = unsafe { libc::gettid() };
        // The first to die is heard; whoever dies beside it waits for the same release.
        bed.write(&LastWords { tid, signal, code: info.si_code, address, sender, registers: registers(context) });
        wait(bed);
    }
    // SAFETY: a zeroed sigaction is the default one (SIG_DFL is 0); gettid, getpid, sigaction and tgkill may be called here.
    unsafe {
        let default: libc::sigaction = zeroed();
        libc::sigaction(signal, &default, null_mut());
        // A fault comes again by itself when this returns; a signal that was sent does not.
        if info.si_code <= 0 {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
        }
    }
}

fn wait(bed: &DeathBed) {
    let glance = libc::timespec { tv_sec: 0, tv_nsec: GLANCE_NS };
    for _ in 0..GLANCES {
        if bed.released() {
            return;
        }
        // SAFETY: a valid timespec; nanosleep may be called in a handler.
        unsafe { libc::nanosleep(&glance, null_mut()) };
    }
}

/// In the journal's order: DWARF's sixteen, the program counter, the flags.
#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> [u64; crate::journal::REGISTERS] {
    const ORDER: [c_int; crate::journal::REGISTERS] = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
        libc::REG_RIP,
        libc::REG_EFL,
    ];
    ORDER.map(|number| context.uc_mcontext.gregs[number as usize] as u64)
}
