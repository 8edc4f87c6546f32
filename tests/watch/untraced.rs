//! Where ptrace is refused (a seccomp filter, as containers have one): what the handler in the child makes known.
#![allow(unsafe_code)] // installs the filter

use crate::victim::{faulting, run_spec};
use crate::worker::{calls, spec};
use cubin_stress::evidence::{Found, Trigger, Watch};
use cubin_stress::supervisor::trial::End;
use cubin_stress::vocabulary::{Call, Place};

/// Makes `ptrace` answer EPERM in this thread and all that descends from it.
fn refuse_ptrace() {
    let load_number = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let if_ptrace = libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_ptrace as u32 };
    let answer = |k| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k };
    let refuse = answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let mut filter = [load_number, if_ptrace, refuse, answer(libc::SECCOMP_RET_ALLOW)];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid program that outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn the_child_writes_its_own_last_words_and_dies_of_its_signal() {
    let watched = std::thread::spawn(|| {
        refuse_ptrace();
        run_spec(spec("tile/add.sm_120.cubin", 20.0, Some("callback-list-race:force=1")))
    });
    let (outcome, told) = watched.join().unwrap();
    assert_eq!(outcome.end, End::Signaled(libc::SIGSEGV), "{:?}\n{}", outcome.journal.notes, outcome.stderr_tail);
    assert!(outcome.soft_errors.iter().any(|line| line.starts_with("ptrace was refused")), "{:?}", outcome.soft_errors);
    assert_eq!((outcome.faults.len(), told.faults.len()), (1, 1), "{:?}", outcome.faults);
    let fault = &outcome.faults[0];
    assert_eq!((fault.watch, fault.place), (Watch::Handler, Place::Libcuda));
    assert!(
        matches!(fault.trigger, Trigger::Signal { signal: libc::SIGSEGV, si_code: 1.., .. }),
        "{:?}",
        fault.trigger
    );
    assert_eq!(calls(fault), (Some(Call::Launch), vec![Call::Unload]));
    let thread = faulting(fault);
    assert!(thread.registers["rip"] == thread.frames[0].pc && thread.registers["rsp"] != 0);
    assert!(!thread.registers.contains_key("fs_base"), "what the handler does not know is not made up");
    // From the driver into the worker and to the thread's start, without a guess.
    assert_eq!(thread.stack_end, "end of stack");
    assert!(thread.frames.len() > 3 && thread.frames.iter().all(|frame| frame.found != Found::Scanned));
}
