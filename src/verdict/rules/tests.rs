//! The rules against facts as they come from known faults.

use super::alone;
use crate::evidence::{AddressClass, Watch};
use crate::verdict::{Facts, JournalWord, Violation};
use crate::vocabulary::{Call, Confidence, Kind, Owner, Phase, Place};

/// A SIGSEGV in a launch with another thread's unload beside it.
fn crash(place: Place) -> Facts {
    Facts {
        kind: Kind::Crash,
        phase: Phase::Launch,
        watch: Watch::Ptrace,
        signal: Some(libc::SIGSEGV),
        si_code: Some(1),
        sender: None,
        sent_from_outside: false,
        stopped_by: None,
        fault_address: Some(0x10),
        address_class: AddressClass::NullPage,
        call: Some(Call::Launch),
        module_serial: 7,
        others: vec![(Call::Unload, 8)],
        code: None,
        thread: Some(0),
        own_thread: true,
        place: Some(place),
        place_note: None,
        module: None,
        offset: None,
        function: None,
        build_id: None,
        stack: vec![place, Place::Libcuda, Place::Worker],
        stack_whole: true,
        journal: JournalWord::Legal,
        violation: None,
        heap_message: None,
        tile: true,
        live_modules: None,
        note: None,
    }
}

fn owner(facts: &Facts) -> (Owner, Option<Confidence>) {
    let judgement = alone(facts);
    (judgement.owner, judgement.confidence)
}

#[test]
fn a_place_with_a_legal_journal_is_likely() {
    assert_eq!(owner(&crash(Place::Libcuda)), (Owner::Driver, Some(Confidence::Likely)));
    assert_eq!(owner(&crash(Place::HostObject)), (Owner::CudaTile, Some(Confidence::Likely)));
    assert_eq!(owner(&crash(Place::HostObjectUnmapped)), (Owner::Driver, Some(Confidence::Likely)));
}

#[test]
fn an_illegal_call_takes_the_blame_from_everybody_else() {
    for place in [Place::Libcuda, Place::HostObject, Place::HostObjectUnmapped, Place::Unmapped] {
        let violation = Violation { text: "op 4 after op 3".into(), thread: 0, call: Call::Launch, module: 7 };
        let facts = Facts { journal: JournalWord::Broken, violation: Some(violation), ..crash(place) };
        assert_eq!(owner(&facts).0, Owner::Application);
    }
}

#[test]
fn what_cannot_be_separated_is_insufficient() {
    assert_eq!(owner(&crash(Place::Anonymous)).0, Owner::Insufficient);
    let unreadable = Facts { journal: JournalWord::Unreadable, call: None, ..crash(Place::Libcuda) };
    assert_eq!(owner(&unreadable).0, Owner::Insufficient);
}

#[test]
fn a_jump_into_nothing_from_the_driver_is_suspected_only() {
    assert_eq!(owner(&crash(Place::Unmapped)), (Owner::Driver, Some(Confidence::Suspected)));
}

#[test]
fn a_kill_from_outside_is_nobodys_bug() {
    let facts = Facts { signal: Some(libc::SIGKILL), ..crash(Place::Libcuda) };
    assert_eq!(owner(&facts).0, Owner::Harness);
}

#[test]
fn a_fault_that_another_process_sent_and_a_stop_are_nobodys_bug() {
    let sent = Facts { sent_from_outside: true, sender: Some(1), ..crash(Place::Libcuda) };
    assert_eq!(owner(&sent).0, Owner::Harness);
    let stopped = Facts { kind: Kind::Hang, signal: None, stopped_by: Some(libc::SIGSTOP), ..crash(Place::Libcuda) };
    assert_eq!(owner(&stopped).0, Owner::Harness);
}

#[test]
fn a_full_table_is_no_wrong_architecture() {
    let facts = Facts {
        kind: Kind::ApiError,
        phase: Phase::Load,
        call: Some(Call::Load),
        code: Some(209),
        live_modules: Some(500),
        ..crash(Place::Libcuda)
    };
    let judgement = alone(&facts);
    assert_eq!(judgement.owner, Owner::Harness);
    assert!(judgement.evidence[0].contains("same image loaded 500 times before in this process; 500 live modules"));
    let first = Facts { live_modules: Some(0), ..facts };
    assert_eq!(alone(&first).owner, Owner::Environment);
}

/// A thread that is still getting ready meets the code that another one's launch left behind.
#[test]
fn a_sticky_code_in_startup_is_not_the_machines() {
    let facts = |code| Facts {
        kind: Kind::ApiError,
        phase: Phase::Startup,
        call: Some(Call::Memset),
        code: Some(code),
        place: None,
        ..crash(Place::Libcuda)
    };
    assert_eq!(owner(&facts(700)), (Owner::CudaTile, Some(Confidence::Suspected)));
    assert_eq!(owner(&facts(999)).0, Owner::Environment);
}
