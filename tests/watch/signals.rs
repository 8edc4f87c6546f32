//! Every signal that looks fatal, and what is seen of it.

use crate::victim::{faulting, names, only_fault, run};
use cubin_stress::evidence::{Found, Trigger, Watch};
use cubin_stress::supervisor::trial::End;
use cubin_stress::vocabulary::Place;

fn dies_of(which: &str, number: i32, code: i32, address: Option<u64>) {
    let (outcome, told) = run("signals", &[which]);
    assert_eq!(outcome.end, End::Signaled(number));
    let fault = only_fault(&outcome);
    let Trigger::Signal { signal, si_code, address: found, .. } = fault.trigger else { panic!("{:?}", fault.trigger) };
    assert_eq!((signal, si_code), (number, code), "{which}");
    if address.is_some() {
        assert_eq!(found, address);
    }
    assert_eq!((fault.watch, fault.soft_errors.as_slice()), (Watch::Ptrace, &[][..]));
    assert!(told.stood && told.withdrawn.is_empty());
    let thread = faulting(fault);
    assert!(names(thread).contains(&"main"), "{which}: {:?}", names(thread));
    assert_eq!(thread.stack_end, "end of stack", "{which}");
    assert!(thread.frames.iter().skip(1).all(|frame| frame.found == Found::Cfi));
}

#[test]
fn segmentation_fault() {
    dies_of("segv", libc::SIGSEGV, 1, Some(8));
}

#[test]
fn bus_error() {
    dies_of("bus", libc::SIGBUS, 2, None);
}

#[test]
fn illegal_instruction() {
    dies_of("ill", libc::SIGILL, 2, None);
}

#[test]
fn division_by_zero() {
    dies_of("fpe", libc::SIGFPE, 1, None);
}

#[test]
fn abort() {
    dies_of("abrt", libc::SIGABRT, -6, None);
}

#[test]
fn forbidden_system_call() {
    dies_of("sys", libc::SIGSYS, 1, None);
}

#[test]
fn breakpoint() {
    dies_of("trap", libc::SIGTRAP, 128, None);
}

#[test]
fn a_crash_shows_registers_memory_and_modules() {
    let (outcome, _) = run("signals", &["segv"]);
    let fault = only_fault(&outcome);
    let thread = faulting(fault);
    let frame = &thread.frames[0];
    assert_eq!((fault.place, frame.place, frame.found), (Place::Program, Place::Program, Found::Registers));
    assert_eq!((thread.registers["rip"], thread.registers["rsp"]), (frame.pc, frame.sp));
    let module = &fault.modules[frame.module.unwrap()];
    assert!(module.path.ends_with("/signals"));
    assert_eq!(module.bias + frame.module_address.unwrap(), frame.pc);
    assert!(frame.function.unwrap() <= frame.module_address.unwrap());
    let libc = fault.modules.iter().find(|module| module.place == Place::Libc && module.path.contains("libc.so"));
    assert!(libc.unwrap().build_id.as_ref().unwrap().len() >= 32);
    assert!(fault.modules.iter().any(|module| module.place == Place::Loader));
    let pc = fault.memory.iter().find(|bytes| bytes.what == "pc").unwrap();
    assert_eq!((pc.address, pc.hex.len()), (frame.pc - 64, 256));
    assert!(fault.process.resident_bytes.unwrap() > 0 && fault.process.threads == Some(1));
}

#[test]
fn killed_from_outside_is_an_end_without_a_faulting_thread() {
    for (which, number) in [("kill", libc::SIGKILL), ("term", libc::SIGTERM)] {
        let (outcome, told) = run("signals", &[which]);
        assert_eq!(outcome.end, End::Signaled(number));
        let fault = only_fault(&outcome);
        assert_eq!((fault.trigger.clone(), fault.tid), (Trigger::Exit { status: number }, None));
        assert!(told.stood);
        assert!(names(&fault.threads[0]).contains(&"main"));
    }
}
