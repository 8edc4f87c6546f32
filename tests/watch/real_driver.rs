//! A real fault inside NVIDIA's real library, which needs no GPU: a bad output pointer.
//!
//! The library is that of this machine, or the one that `STRESS_TEST_LIBCUDA` names (for example unpacked from Debian's package
//! libcuda1, component non-free).

use crate::victim::{faulting, names, only_fault, run};
use cubin_stress::driver;
use cubin_stress::evidence::{AddressClass, Found, Trigger};
use cubin_stress::plan::DriverChoice;
use cubin_stress::vocabulary::Place;
use std::path::PathBuf;

fn library() -> Option<PathBuf> {
    let named = std::env::var_os("STRESS_TEST_LIBCUDA").map(PathBuf::from);
    named.or_else(|| driver::choose(&DriverChoice::Real).ok().map(|chosen| chosen.path))
}

#[test]
fn a_fault_in_the_real_library_is_walked_to_its_end_and_named_for_ever() {
    let Some(library) = library() else {
        eprintln!("skipped: no real libcuda on this machine, and STRESS_TEST_LIBCUDA names none");
        return;
    };
    let library = library.to_str().unwrap();
    for args in [&[library][..], &[library, "thread"]] {
        let (outcome, _) = run("bad-output-pointer", args);
        let fault = only_fault(&outcome);
        assert!(fault.stderr_tail.contains("cuInit answers"), "{}", fault.stderr_tail);
        assert!(matches!(fault.trigger, Trigger::Signal { signal: libc::SIGSEGV, address: Some(0x10), .. }));
        assert_eq!((fault.place, fault.address_class.clone()), (Place::Libcuda, AddressClass::NullPage));
        let thread = faulting(fault);
        assert_eq!(thread.stack_end, "end of stack");
        assert!(thread.frames[1..].iter().all(|frame| frame.found == Found::Cfi), "{:#?}", thread.frames);
        let frame = &thread.frames[0];
        assert!(frame.function.unwrap() <= frame.module_address.unwrap());
        assert_eq!(fault.modules[frame.module.unwrap()].build_id.as_ref().unwrap().len(), 40);
        let names = names(thread);
        let outermost = if args.len() > 1 { "body" } else { "main" };
        assert!(names.contains(&"asks") && names.contains(&outermost), "{names:?}");
        assert_eq!(thread.frames.last().unwrap().place, if args.len() > 1 { Place::Libc } else { Place::Program });
    }
}
