//! Scripted plans on the simulated driver: legal, illegal, and in a given order across threads.

mod child;

use child::{Left, order, run};
use cubin_stress::journal::NoteKind;
use cubin_stress::plan::{Op, Workload};
use cubin_stress::vocabulary::Call;

fn script(threads: usize, text: &str) -> Workload {
    #[derive(serde::Deserialize)]
    struct Script {
        op: Vec<Op>,
    }
    Workload { threads, script: toml::from_str::<Script>(text).unwrap().op, ..Workload::default() }
}

fn play(workload: Workload, environment: &[(&str, &str)]) -> Left {
    run(&order("tile/add.sm_120.cubin", workload, 30.0), environment)
}

/// One line an op: `thread call key=value ...`.
fn ops(lines: &[&str]) -> String {
    let table = |line: &&str| {
        let mut words = line.split_whitespace();
        let head = format!("[[op]]\nthread = {}\ncall = '{}'\n", words.next().unwrap(), words.next().unwrap());
        let rest = words.map(|word| {
            let (key, value) = word.split_once('=').unwrap();
            let plain = value.parse::<i64>().is_ok();
            if plain { format!("{key} = {value}\n") } else { format!("{key} = '{value}'\n") }
        });
        head + &rest.collect::<String>()
    };
    lines.iter().map(table).collect()
}

#[test]
fn a_legal_script_is_done_once_and_its_result_is_right() {
    let text = ops(&[
        "0 load module=m",
        "0 get_function module=m function=f",
        "0 stream_create stream=s",
        "0 launch function=f stream=s",
        "0 stream_sync stream=s",
        "0 verify",
        "0 unload module=m",
        "0 stream_destroy stream=s",
        "0 mem_alloc buffer=b bytes=4096",
        "0 copy_in buffer=b bytes=4096",
        "0 copy_out buffer=b bytes=4096",
        "0 mem_free buffer=b",
        "0 get_error_string value=100",
        "0 sync",
    ]);
    let left = play(script(1, &text), &[]);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    assert_eq!(left.notes(NoteKind::ApiError).len() + left.notes(NoteKind::WrongResult).len(), 0, "{}", left.told());
    assert_eq!((left.count(Call::Launch), left.count(Call::Verify)), ((1, 0), (1, 0)));
    assert!(left.snapshot.finished);
}

#[test]
fn a1_a_function_of_an_unloaded_module_is_launched_as_written() {
    let text = ops(&[
        "0 load module=m1",
        "0 get_function module=m1 function=f1",
        "0 unload module=m1",
        "0 launch function=f1",
        "0 load module=m2",
        "0 get_function module=m2 function=f2",
        "0 launch function=f2",
        "0 sync",
    ]);
    let left = play(script(1, &text), &[("CUDA_SIM_BUG", "stale-function:reaction=400")]);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let notes = left.notes(NoteKind::ApiError);
    assert_eq!(notes.len(), 1, "{}", left.told());
    assert_eq!((notes[0].call, notes[0].code, notes[0].module), (Some(Call::Launch), 400, 1));
    let thread = &left.snapshot.threads[0];
    let of_first = thread.last.iter().filter(|record| record.module == 1).map(|record| record.call).collect::<Vec<_>>();
    assert_eq!(of_first, [Call::Load, Call::GetFunction, Call::Unload, Call::Launch]);
    assert_eq!(left.count(Call::Launch), (2, 1), "the second launch is legal and went well");

    let left = play(script(1, &text), &[("CUDA_SIM_BUG", "stale-function:reaction=716")]);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    assert!(left.notes(NoteKind::ApiError).iter().any(|note| note.code == 716), "{}", left.told());

    let left = play(script(1, &text), &[("CUDA_SIM_BUG", "stale-function:reaction=fault")]);
    let open = left.snapshot.threads[0].in_flight.unwrap();
    assert_eq!((open.call, open.module), (Call::Launch, 1), "{}", left.told());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&left.status), Some(libc::SIGSEGV));
}

#[test]
fn an_expected_error_is_no_finding_and_an_absent_one_is() {
    let stale = |expect: &str| {
        ops(&[
            "0 load module=m",
            "0 get_function module=m function=f",
            "0 unload module=m",
            &format!("0 launch function=f {expect}"),
        ])
    };
    let bug = [("CUDA_SIM_BUG", "stale-function:reaction=400")];
    assert!(play(script(1, &stale("expect=400")), &bug).notes(NoteKind::ApiError).is_empty());
    let left = play(script(1, &ops(&["0 sync expect=400"])), &[]);
    let notes = left.notes(NoteKind::ApiError);
    assert!(notes[0].text.contains("the plan expects CUDA_ERROR_INVALID_HANDLE (400)"), "{}", left.told());
}

#[test]
fn ops_of_two_threads_come_in_the_order_that_the_script_gives() {
    let mut lines = vec!["0 load module=m".to_string()];
    for number in 1..40 {
        lines.push(format!("{} sync after={number}", number % 2));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let left = play(script(2, &ops(&lines)), &[]);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let mut all: Vec<_> = left.snapshot.threads[..2]
        .iter()
        .enumerate()
        .flat_map(|(index, thread)| {
            thread.last.iter().filter(|record| record.call == Call::Sync).map(move |record| (record.enter_ns, index))
        })
        .collect();
    all.sort_unstable();
    let threads: Vec<_> = all.iter().map(|(_, thread)| *thread).collect();
    assert_eq!(threads, (1..40).map(|number| number % 2).collect::<Vec<_>>());
}

#[test]
fn after_entered_lets_an_op_begin_while_another_is_in_the_driver() {
    let text = ops(&["0 sleep millis=1500", "1 load module=m after_entered=1"]);
    let left = play(script(2, &text), &[]);
    let [sleeper, loader] = &left.snapshot.threads[..2] else { panic!("two threads") };
    let of = |thread: &cubin_stress::journal::ThreadSnapshot, call| {
        *thread.last.iter().rfind(|record| record.call == call).unwrap()
    };
    let (sleep, load) = (of(sleeper, Call::Wait), of(loader, Call::Load));
    assert!(sleep.enter_ns <= load.enter_ns && load.enter_ns < sleep.leave_ns, "{sleep:?} {load:?}");
}

#[test]
fn raw_addresses_reach_the_driver_as_they_are() {
    let text =
        ops(&["0 load module=m", "0 get_function module=m function=f", "0 launch function=f address=4096", "0 sync"]);
    let left = play(script(1, &text), &[]);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let notes = left.notes(NoteKind::ApiError);
    assert!(notes.iter().any(|note| note.code == 700), "{}", left.told());

    let left = play(script(1, &ops(&["0 get_error_string value=100 address=16"])), &[]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&left.status), Some(libc::SIGSEGV), "{}", left.told());
    assert_eq!(left.snapshot.threads[0].in_flight.unwrap().call, Call::GetErrorString);
}

#[test]
fn a_script_that_makes_no_sense_is_refused_before_any_driver_call() {
    for (text, part) in [
        (ops(&["0 load"]), "`module` is missing"),
        (ops(&["3 sync"]), "thread 3"),
        (ops(&["0 sync after=2", "0 sync"]), "never reached"),
    ] {
        let left = play(script(1, &text), &[]);
        assert_eq!(left.status.code(), Some(2), "{}", left.told());
        assert!(left.notes(NoteKind::BadPlan)[0].text.contains(part), "{}", left.told());
        assert_eq!(left.count(Call::Init).0, 0);
    }
}
