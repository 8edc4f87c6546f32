//! Faults of the application's own: the driver takes them as a C library would, so that they look like the driver's.

use crate::program::{Ended, Run};
use std::os::unix::process::ExitStatusExt as _;

const TILE: &str = "tile/add.sm_120.cubin";

fn misuse(fault: &str, bug: &str) -> Ended {
    let run = Run::new("misuse", TILE).arg(fault);
    if bug.is_empty() { run.output() } else { run.env("CUDA_SIM_BUG", bug).output() }
}

fn crashes_in_libcuda(fault: &str, bug: &str) {
    let ended = misuse(fault, bug);
    assert_eq!(ended.status.signal(), Some(11), "{fault}: {ended:?}");
    assert!(ended.stdout.ends_with("signal 11 pc in libcuda.so.1\n"), "{fault}: {ended:?}");
}

#[test]
fn handles_and_pointers_that_are_not_checked_fault_inside_libcuda() {
    for fault in ["destroyed-context", "destroyed-stream", "bad-output-pointer", "short-parameters"] {
        crashes_in_libcuda(fault, "");
    }
}

#[test]
fn a_stale_function_is_refused_sticks_or_faults() {
    let answer = |bug| misuse("stale-function", bug).stdout;
    let refused = "before cuInit 3\nunload 0\nlaunch 400\nsync 0\nsync again 0\n";
    assert_eq!((answer(""), answer("stale-function:reaction=400")), (refused.to_owned(), refused.to_owned()));
    let sticky = "before cuInit 3\nunload 0\nlaunch 0\nsync 716\nsync again 716\n";
    assert_eq!(answer("stale-function:reaction=716"), sticky);
    crashes_in_libcuda("stale-function", "stale-function:reaction=fault");
}

#[test]
fn an_illegal_access_sticks_to_the_context() {
    let ended = misuse("wild-device-pointer", "");
    assert_eq!(ended.stdout, "before cuInit 3\nlaunch 0\nsync 700\nload 700\n", "{ended:?}");
}
