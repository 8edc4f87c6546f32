//! What kind of address a fault is about.

use crate::victim::{only_fault, run, run_spec, spec};
use cubin_stress::evidence::{AddressClass, Evidence, Trigger};

fn fault(kind: &str) -> Evidence {
    only_fault(&run("bad-address", &[kind]).0).clone()
}

fn class(kind: &str) -> (AddressClass, String) {
    let fault = fault(kind);
    (fault.address_class, fault.address_note.unwrap_or_default())
}

#[test]
fn each_kind_is_told_from_the_others() {
    assert_eq!(class("null"), (AddressClass::NullPage, String::new()));
    assert_eq!(class("unmapped"), (AddressClass::Unmapped, String::new()));
    let (kind, note) = class("not-canonical");
    assert_eq!((kind, note.contains("0x1234567812345678")), (AddressClass::NonCanonical, true), "{note}");
    let (kind, note) = class("protected");
    assert_eq!((kind, note.contains("r--")), (AddressClass::Protected, true), "{note}");
    let (kind, note) = class("data");
    assert_eq!((kind, note.starts_with("a jump into")), (AddressClass::Protected, true), "{note}");
    let (kind, note) = class("formerly-code");
    assert_eq!((kind, note.contains("was mapped executable")), (AddressClass::WasExecutable, true), "{note}");
}

#[test]
fn poison_is_found_in_registers_and_in_the_memory_that_the_instruction_reads() {
    for kind in ["poison-register", "poison-pointer", "poison-operand"] {
        let fault = fault(kind);
        let note = fault.address_note.as_deref().unwrap_or_default();
        assert_eq!(
            (&fault.address_class, note.contains("0xa5 over and over")),
            (&AddressClass::Poison, true),
            "{kind} {note}"
        );
        // The kernel names no address: it must not look like a null pointer.
        assert!(matches!(fault.trigger, Trigger::Signal { si_code: libc::SI_KERNEL, address: None, .. }), "{kind}");
    }
    let fault = fault("poison-operand");
    assert_eq!(fault.instruction.as_deref(), Some("calls through [rdi+0x10]"));
    assert!(fault.address_note.unwrap().starts_with("the pointer at [rdi+0x10]"));
}

#[test]
fn running_out_of_stack_is_a_stack_guard() {
    let (outcome, _) = run("stack-overflow", &[]);
    assert_eq!(only_fault(&outcome).address_class, AddressClass::StackGuard);
}

#[test]
fn without_the_log_of_mappings_former_code_is_only_unmapped() {
    let mut spec = spec("bad-address", &["formerly-code"]);
    spec.observe = cubin_stress::plan::Observe::Light;
    let (outcome, _) = run_spec(spec);
    assert_eq!(only_fault(&outcome).address_class, AddressClass::Unmapped);
}
