//! Children that leave by themselves: who left, and whether that was normal.

use crate::victim::{faulting, names, only_fault, run};
use cubin_stress::evidence::Trigger;
use cubin_stress::supervisor::trial::End;

#[test]
fn an_exit_code_outside_the_contract_is_recorded_with_who_left() {
    let (outcome, told) = run("exits-with", &["41"]);
    assert_eq!(outcome.end, End::Exited(41));
    let fault = only_fault(&outcome);
    assert_eq!(fault.trigger, Trigger::Exit { status: 41 << 8 });
    let names = names(faulting(fault));
    assert!(names.contains(&"leaves") && names.contains(&"main"), "{names:?}");
    assert!(told.stood);
}

#[test]
fn success_without_a_finished_order_is_no_success() {
    let (outcome, _) = run("exits-with", &["0"]);
    assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(0), 1));
}

#[test]
fn an_exit_code_of_the_contract_is_no_fault() {
    for code in ["2", "3", "70"] {
        let (outcome, told) = run("exits-with", &[code]);
        assert_eq!((outcome.end, outcome.faults.len()), (End::Exited(code.parse().unwrap()), 0));
        assert!(told.faults.is_empty());
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error_with_its_name() {
    let mut spec = crate::victim::spec("no-such-victim", &[]);
    spec.program.0 = "/nonexistent/no-such-victim".into();
    let error = cubin_stress::supervisor::trial::run(spec, &mut ()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/no-such-victim"), "{error}");
}
