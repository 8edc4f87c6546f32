//! What a worker cannot do: how it says so, and with which exit status.

mod child;

use child::{Left, committed, order, run, start_with};
use cubin_stress::journal::NoteKind;
use cubin_stress::plan::{ApiStyle, Dim3, Workload};
use cubin_stress::vocabulary::Call;

const TILE: &str = "tile/add.sm_120.cubin";
const REGULAR: &str = "ptx/add.sm_120.cubin";

/// The one note of its kind, and the status that goes with it.
fn only_note(left: &Left, kind: NoteKind) -> String {
    let notes = left.notes(kind);
    assert_eq!(notes.len(), 1, "{}", left.told());
    let status = if kind == NoteKind::BadPlan { 2 } else { 3 };
    assert_eq!(left.status.code(), Some(status), "{}", left.told());
    assert_eq!(left.count(Call::Launch).0, 0, "{}", left.told());
    assert!(!left.snapshot.finished);
    notes[0].text.clone()
}

fn assert_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn a8_a_missing_jit_library_is_named_once_for_all_threads() {
    let four = Workload { threads: 4, ..Workload::default() };
    let mut order = order("other/add.tilebc", four, 5.0);
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libcuda.so.595.71.05");
    std::fs::copy(&order.driver, &driver).unwrap();
    order.driver = driver;
    let left = run(&order, &[("CUDA_SIM_BUG", "missing-jit")]);
    let text = only_note(&left, NoteKind::SetupFailed);
    assert_parts(&text, &["221", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "libnvidia-tileiras.so.595.71.05"]);
    assert_eq!(left.rounds(), left.count(Call::Load).0, "nothing but first loads");
}

#[test]
fn a9_a_tile_image_needs_its_exact_architecture() {
    for check in ["arch-check=load", "arch-check=lookup"] {
        let profile = format!("none:{check}");
        let environment = [("CUDA_SIM_DEVICE", "sm_121"), ("CUDA_SIM_PROFILE", profile.as_str())];
        let order = order(TILE, Workload::default(), 0.2);
        let text = only_note(&run(&order, &environment), NoteKind::SetupFailed);
        assert_parts(&text, &["209", "image sm_120, device sm_121, tile images need an exact match"]);

        let whole = std::fs::read(committed(TILE)).unwrap();
        let with = |byte: u8| {
            let mut bytes = whole.clone();
            bytes[0x31] = byte;
            start_with(&order, &bytes, &environment).finish()
        };
        assert_eq!(with(0x79).status.code(), Some(0), "{}", with(0x79).told());
        assert_parts(&only_note(&with(0x50), NoteKind::SetupFailed), &["209", "sm_80"]);

        for broken in [whole[..64].to_vec(), [&[0; 4], &whole[4..]].concat()] {
            let left = start_with(&order, &broken, &environment).finish();
            only_note(&left, NoteKind::BadPlan);
            assert_eq!(left.count(Call::Init).0, 0, "our own inspector comes before any driver call");
        }
    }
}

#[test]
fn a10_an_absent_kernel_is_our_refusal_whatever_the_driver_says() {
    for (lookup, accepted) in [("lookup=strict", 0), ("lookup=lenient", 1)] {
        let workload = Workload { kernel: Some("no_such_kernel".into()), ..Workload::default() };
        let profile = format!("none:{lookup}");
        let left = run(&order(REGULAR, workload, 5.0), &[("CUDA_SIM_PROFILE", &profile)]);
        let text = only_note(&left, NoteKind::BadPlan);
        assert_parts(&text, &["no_such_kernel", REGULAR, "kernels present: repro_kernel"]);
        let noted = left.notes(NoteKind::Info);
        let accepts = noted.iter().filter(|note| note.text == "driver accepted a lookup of an absent symbol");
        assert_eq!(accepts.count(), accepted, "{}", left.told());
    }
}

#[test]
fn a11_an_exhausted_module_table_is_told_with_the_live_modules() {
    let all = Workload { keep: 1, ..Workload::default() };
    let limit = [("CUDA_SIM_BUG", "module-limit:n=500")];
    let left = run(&order(REGULAR, all, 1.0), &limit);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let notes = left.notes(NoteKind::ApiError);
    assert!((1..=2).contains(&notes.len()), "one a thread at most: {}", left.told());
    assert_eq!((notes[0].code, notes[0].live_modules), (209, 500));
    assert_parts(&notes[0].text, &["same image loaded 500 times before in this process; 500 live modules"]);
    assert!(left.count(Call::Load).1 < 2000, "a loop that only fails must not spin");

    let some = Workload { keep: 0, ..Workload::default() };
    let left = run(&order(REGULAR, some, 0.3), &limit);
    assert!(left.notes(NoteKind::ApiError).is_empty(), "{}", left.told());
}

#[test]
fn a14_a_driver_without_newer_entry_points_runs_modules_and_names_what_libraries_lack() {
    let older = [("CUDA_SIM_BUG", "missing-entry:entry=cuCtxCreate_v4+cuLibraryLoadData+cuKernelGetFunction")];
    let left = run(&order(TILE, Workload::default(), 0.2), &older);
    assert_eq!(left.status.code(), Some(0), "{}", left.told());
    let library = Workload { api: ApiStyle::Library, ..Workload::default() };
    let text = only_note(&run(&order(TILE, library, 0.2), &older), NoteKind::SetupFailed);
    assert_parts(&text, &["cuLibraryLoadData", "CUDA 1", "--api module"]);
}

#[test]
fn a_driver_without_an_entry_point_that_every_run_needs_is_refused_with_its_name() {
    let left = run(&order(TILE, Workload::default(), 0.2), &[("CUDA_SIM_BUG", "missing-entry:entry=cuModuleUnload")]);
    assert_parts(&only_note(&left, NoteKind::SetupFailed), &["cuModuleUnload", "CUDA 1"]);
}

#[test]
fn a15_a_context_that_cannot_be_made_is_said_and_is_not_a_pass() {
    let bug = [("CUDA_SIM_BUG", "fail-context:k=3")];
    let mut order = order(TILE, Workload::default(), 0.2);
    assert_eq!(run(&order, &bug).status.code(), Some(0));
    order.child = 3;
    let left = run(&order, &bug);
    let text = only_note(&left, NoteKind::SetupFailed);
    assert_parts(&text, &["CUDA_ERROR_OUT_OF_MEMORY at context creation"]);
    assert_eq!(left.rounds(), 0);
}

#[test]
fn no_device_is_refused_with_the_code_and_what_to_do() {
    let left = run(&order(TILE, Workload::default(), 1.0), &[("CUDA_SIM_BUG", "no-device")]);
    let text = only_note(&left, NoteKind::SetupFailed);
    assert_parts(&text, &["CUDA_ERROR_NO_DEVICE", "100", "--driver sim"]);
    let mut order = order(TILE, Workload::default(), 1.0);
    order.device = 7;
    assert_parts(&only_note(&run(&order, &[]), NoteKind::SetupFailed), &["device 7", "101"]);
}

#[test]
fn a_library_that_is_no_driver_is_refused() {
    let mut order = order(TILE, Workload::default(), 1.0);
    order.driver = "/nowhere/libcuda.so.1".into();
    assert_parts(&only_note(&run(&order, &[]), NoteKind::SetupFailed), &["/nowhere/libcuda.so.1"]);
}

#[test]
fn a_launch_that_the_driver_refuses_from_the_first_is_the_plans_fault() {
    let workload = Workload { block: Some(Dim3(5000, 1, 1)), ..Workload::default() };
    let left = run(&order(REGULAR, workload, 1.0), &[]);
    assert_eq!(left.status.code(), Some(2), "{}", left.told());
    assert_parts(&left.notes(NoteKind::BadPlan)[0].text, &["refuses this launch", "5000x1x1"]);
}

#[test]
fn threads_beyond_the_journals_room_are_refused() {
    let left = run(&order(TILE, Workload { threads: 0, ..Workload::default() }, 1.0), &[]);
    only_note(&left, NoteKind::BadPlan);
}

#[test]
fn without_its_descriptors_the_command_says_whose_it_is() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_stress")).arg("worker").output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("supervisor"));
}
