//! The exit code of what was found.

use super::outline::Outline;
use crate::exit::Exit;
use crate::plan::RunPlan;

/// A child's exit codes: the plan does not fit the image, and this program's own fault.
const BAD_PLAN: u8 = 2;
const INTERNAL: u8 = 70;

/// The first that applies of `exit.rs`' order.
pub fn exit_code(plan: &RunPlan, trials: &[Outline]) -> Exit {
    // With a fault beside it the code is the fault's doing, not the worker's word.
    let exited = |wanted: u8| trials.iter().any(|t| t.exit == Some(wanted) && t.faults == 0);
    let sound = || trials.iter().filter(|t| !t.contaminated);
    let faults: u64 = sound().map(|t| u64::from(t.faults)).sum();
    let mut exit = Exit::Clean;
    if exited(INTERNAL) {
        exit = exit.or(Exit::Internal);
    }
    if exited(BAD_PLAN) {
        exit = exit.or(Exit::BadInput);
    }
    let all_refused = !trials.is_empty() && !trials.iter().any(|t| t.worked);
    if all_refused && faults > 0 && sound().all(|t| t.environment) {
        return exit.or(Exit::CannotRun);
    }
    if faults > 0 {
        exit = exit.or(Exit::FaultFound);
    }
    if trials.is_empty() || !enough_exposure(plan, trials) {
        exit = exit.or(Exit::Inconclusive);
    }
    exit
}

/// Whether each arm met enough of what is being looked for that "no fault" says something.
fn enough_exposure(plan: &RunPlan, trials: &[Outline]) -> bool {
    plan.arms.iter().enumerate().all(|(index, arm)| {
        let of_arm = || trials.iter().filter(|t| t.arm as usize == index);
        let launches: u64 = of_arm().map(|t| t.launches).sum();
        let overlaps: u64 = of_arm().map(|t| t.overlaps).sum();
        let exposure = if arm.workload.can_overlap() { overlaps } else { launches };
        // A floor of nothing still asks for some work.
        launches > 0 && exposure >= plan.exposure_floor
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arm, Workload};

    const FINE: Outline = Outline {
        arm: 0,
        block: 0,
        launches: 1000,
        launches_to_fault: 1000,
        overlaps: 500,
        faults: 0,
        exit: Some(0),
        worked: true,
        environment: true,
        contaminated: false,
    };
    const REFUSED: Outline = Outline { launches: 0, overlaps: 0, faults: 1, exit: Some(3), worked: false, ..FINE };

    fn code(trials: &[Outline]) -> Exit {
        let arm = Arm { name: "a".into(), image: "a".into(), workload: Workload::default() };
        exit_code(&RunPlan { arms: vec![arm], ..RunPlan::default() }, trials)
    }

    #[test]
    fn no_work_is_never_a_pass() {
        assert_eq!(code(&[]), Exit::Inconclusive);
        assert_eq!(code(&[Outline { overlaps: 99, ..FINE }]), Exit::Inconclusive);
        assert_eq!(code(&[FINE]), Exit::Clean);
    }

    #[test]
    fn one_child_that_could_not_begin_is_a_fault_and_all_of_them_mean_that_nothing_can_run_here() {
        assert_eq!(code(&[FINE, REFUSED]), Exit::FaultFound);
        assert_eq!(code(&[REFUSED, REFUSED]), Exit::CannotRun);
        assert_eq!(code(&[Outline { environment: false, ..REFUSED }]), Exit::FaultFound);
    }

    #[test]
    fn a_bad_plan_and_an_own_fault_outweigh_what_was_found() {
        assert_eq!(code(&[FINE, Outline { faults: 0, exit: Some(2), ..REFUSED }]), Exit::BadInput);
        assert_eq!(code(&[Outline { exit: Some(70), ..FINE }]), Exit::Internal);
        assert_eq!(code(&[Outline { faults: 1, exit: Some(70), ..FINE }]), Exit::FaultFound);
    }

    #[test]
    fn what_was_found_on_an_untrustworthy_host_does_not_count() {
        assert_eq!(code(&[FINE, Outline { faults: 3, exit: None, contaminated: true, ..FINE }]), Exit::Clean);
    }
}
