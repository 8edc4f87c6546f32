//! The worker's loop on the simulated driver: what it calls, what it keeps, what it notices.

mod child;

use child::{Left, order, run};
use cubin_stress::journal::NoteKind;
use cubin_stress::plan::{ApiStyle, Argument, ContextKind, LockKind, SyncPlace, Verify, Workload};
use cubin_stress::vocabulary::Call;

const SHORT: f64 = 0.3;

fn assert_clean(left: &Left) {
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    for kind in [NoteKind::SetupFailed, NoteKind::BadPlan, NoteKind::ApiError, NoteKind::WrongResult] {
        assert!(left.notes(kind).is_empty(), "{}", left.told());
    }
    assert_eq!(left.snapshot.soft_errors, Vec::<String>::new());
    assert!(left.snapshot.finished && left.snapshot.began_ns.is_some());
    assert!(left.rounds() > 10, "{}", left.told());
}

#[test]
fn the_reports_loop_keeps_one_module_in_four_and_checks_sums() {
    for image in ["tile/add.sm_120.cubin", "ptx/add.sm_120.cubin"] {
        let left = run(&order(image, Workload::default(), SHORT), &[]);
        assert_clean(&left);
        let (loads, launches, unloads) = (left.count(Call::Load), left.count(Call::Launch), left.count(Call::Unload));
        assert_eq!(loads, launches);
        assert_eq!(loads.0, left.rounds());
        let threads = &left.snapshot.threads[..2];
        let kept: u64 = threads.iter().map(|thread| thread.kept).sum();
        assert_eq!(unloads.0 + kept, loads.0);
        assert!(threads.iter().all(|thread| thread.kept == thread.rounds / 4 && thread.tid != 0));
        assert_eq!(left.count(Call::Sync).0, loads.0);
        assert!(left.count(Call::Verify).0 >= 2, "each thread looks at its first result");
        assert_eq!((left.count(Call::CtxCreate), left.count(Call::CtxDestroy)), ((1, 0), (1, 0)));
        assert_eq!(left.count(Call::MemAlloc), left.count(Call::MemFree));
    }
}

#[test]
fn module_serials_are_unique_and_calls_come_in_the_plans_order() {
    let workload = Workload { keep: 0, verify: Verify::Off, ..Workload::default() };
    let left = run(&order("tile/add.sm_120.cubin", workload, SHORT), &[]);
    assert_clean(&left);
    let mut serials = std::collections::HashSet::new();
    for thread in &left.snapshot.threads[..2] {
        let calls: Vec<_> = thread.last.iter().filter(|record| record.module != 0).collect();
        let first = calls.iter().position(|record| record.call == Call::Load).unwrap();
        for round in calls[first..].chunks_exact(5) {
            let names: Vec<_> = round.iter().map(|record| record.call).collect();
            assert_eq!(names, [Call::Load, Call::GetFunction, Call::Launch, Call::Sync, Call::Unload]);
            assert!(round.iter().all(|record| record.module == round[0].module));
            assert!(round.windows(2).all(|pair| pair[0].leave_ns <= pair[1].enter_ns));
            assert!(serials.insert(round[0].module), "serial {} twice", round[0].module);
        }
    }
}

#[test]
fn contexts_locks_and_the_library_family_change_what_they_should() {
    let base = Workload::default();
    let with = |workload| run(&order("tile/add.sm_120.cubin", workload, SHORT), &[]);

    let left = with(Workload { context: ContextKind::Primary, ..base.clone() });
    assert_clean(&left);
    assert_eq!((left.count(Call::PrimaryCtxRetain).0, left.count(Call::PrimaryCtxRelease).0), (1, 1));
    assert_eq!(left.count(Call::CtxCreate).0, 0);

    let left = with(Workload { context: ContextKind::PerThread, ..base.clone() });
    assert_clean(&left);
    assert_eq!((left.count(Call::CtxCreate).0, left.count(Call::CtxDestroy).0), (2, 2));

    let left = with(Workload { api: ApiStyle::Library, ..base.clone() });
    assert_clean(&left);
    assert_eq!(left.count(Call::Load).0, 0);
    assert_eq!(left.count(Call::LibraryLoad).0, left.rounds());
    assert_eq!(left.count(Call::KernelGetFunction).0, left.rounds());

    let left = with(Workload { sync: SyncPlace::None, verify: Verify::Off, ..base.clone() });
    assert_clean(&left);
    assert_eq!(left.count(Call::Sync).0, 0);

    for lock in [LockKind::Unload, LockKind::All] {
        let left = with(Workload { lock, keep: 0, ..base.clone() });
        assert_clean(&left);
        let [one, two] = &left.snapshot.threads[..2] else { panic!("two threads") };
        let unloads = one.last.iter().filter(|record| record.call == Call::Unload);
        let meeting = unloads.flat_map(|unload| {
            let launches = two.last.iter().filter(|record| record.call == Call::Launch);
            launches.filter(|launch| launch.enter_ns < unload.leave_ns && unload.enter_ns < launch.leave_ns)
        });
        assert_eq!(meeting.count(), 0, "{lock:?}: a launch met an unload");
    }
}

#[test]
fn every_result_can_be_checked_and_explicit_arguments_are_taken() {
    let every = Workload { verify: Verify::All, ..Workload::default() };
    let left = run(&order("tile/add.sm_120.cubin", every, SHORT), &[]);
    assert_clean(&left);
    assert_eq!(left.count(Call::Verify), (left.rounds(), 0));

    let array = |bytes| {
        let number = |value| Argument::I32 { value };
        [Argument::Ptr { bytes }, number(128), number(128), number(128), number(1)]
    };
    let args = Some([array(65536), array(65536), array(65536)].concat());
    let left = run(&order("tile/add.sm_120.cubin", Workload { args, ..Workload::default() }, SHORT), &[]);
    assert_clean(&left);
    assert_eq!(left.count(Call::Verify).0, 0, "what it computes on such arguments is not known");
}

#[test]
fn images_with_descriptors_run() {
    let workload = Workload { kernel: None, ..Workload::default() };
    let left = run(&order("tile/matmul.sm_120.cubin", workload, SHORT), &[]);
    assert_clean(&left);
    assert!(left.notes(NoteKind::Info).iter().any(|note| note.text.starts_with("results are not checked")));
}

#[test]
fn it_stops_when_the_supervisor_asks() {
    let running = child::start(&order("tile/add.sm_120.cubin", Workload::default(), 3600.0), &[]);
    while running.journal.progress().rounds() < 50 {
        std::thread::yield_now();
    }
    running.journal.request_stop().unwrap();
    assert_clean(&running.finish());
}

#[test]
fn a_wrong_result_is_noticed_with_the_element_and_the_loop_goes_on() {
    let every = Workload { verify: Verify::All, ..Workload::default() };
    let left = run(&order("tile/add.sm_120.cubin", every, 1.0), &[("CUDA_SIM_BUG", "wrong-code:force=1")]);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let notes = left.notes(NoteKind::WrongResult);
    assert!(!notes.is_empty(), "{}", left.told());
    assert!(notes[0].text.contains("element ") && notes[0].text.contains("expected"), "{}", notes[0].text);
    assert!(notes[0].thread.is_some() && notes[0].module != 0);
    assert!(left.count(Call::Verify).1 > 0);
}
