//! What is wrong around the driver: no device, no context, no compiler, another architecture, missing entry points.

use crate::program::{Ended, Run};

fn run(image: &str, settings: &[(&str, &str)], keep: &str, rounds: &str) -> Ended {
    let block = if image.starts_with("ptx") { "128" } else { "1" };
    let run = settings.iter().fold(Run::new("loop", image), |run, (name, value)| run.env(name, value));
    run.arg(block).arg(rounds).arg("2").arg(keep).output()
}

fn refused(ended: &Ended, call: &str, code: &str) {
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stdout.starts_with(call) && ended.stdout.contains(code), "wanted {call}: {code} in {ended:?}");
}

#[test]
fn without_a_device_nothing_starts() {
    let ended = run("tile/add.sm_120.cubin", &[("CUDA_SIM_BUG", "no-device")], "4", "1");
    refused(&ended, "cuInit", "100 CUDA_ERROR_NO_DEVICE");
}

#[test]
fn a_context_fails_in_the_child_that_was_named() {
    for (bug, child, fails) in [
        ("fail-context:k=3", "3", true),
        ("fail-context:k=3", "2", false),
        ("fail-context:k=3,of=8", "11", true),
        ("fail-context:all=1", "5", true),
    ] {
        let ended = run("tile/add.sm_120.cubin", &[("CUDA_SIM_BUG", bug), ("CUDA_SIM_CHILD", child)], "4", "1");
        if fails {
            refused(&ended, "cuCtxCreate_v2", "2 CUDA_ERROR_OUT_OF_MEMORY");
        } else {
            assert_eq!(ended.status.code(), Some(0), "{bug} in child {child}: {ended:?}");
        }
    }
}

#[test]
fn without_the_jit_library_tile_images_and_bytecode_are_refused() {
    for image in ["tile/add.sm_120.cubin", "other/add.tilebc"] {
        let ended = run(image, &[("CUDA_SIM_BUG", "missing-jit")], "4", "1");
        refused(&ended, "cuModuleLoadData", "221 CUDA_ERROR_JIT_COMPILER_NOT_FOUND");
    }
    let regular = run("ptx/add.sm_120.cubin", &[("CUDA_SIM_BUG", "missing-jit")], "4", "1");
    assert_eq!(regular.status.code(), Some(0), "{regular:?}");
}

#[test]
fn a_full_context_answers_the_wrong_thing() {
    let ended = run("ptx/add.sm_120.cubin", &[("CUDA_SIM_BUG", "module-limit:n=50")], "1", "40");
    refused(&ended, "cuModuleLoadData", "209 CUDA_ERROR_NO_BINARY_FOR_GPU");
    // One module in four kept leaves room.
    let kept = run("ptx/add.sm_120.cubin", &[("CUDA_SIM_BUG", "module-limit:n=50")], "4", "40");
    assert_eq!(kept.status.code(), Some(0), "{kept:?}");
}

#[test]
fn tile_images_want_their_exact_architecture_and_regular_ones_do_not() {
    let tile = "tile/add.sm_120.cubin";
    refused(&run(tile, &[("CUDA_SIM_DEVICE", "sm_121")], "4", "1"), "cuModuleLoadData", "209 ");
    let lookup = [("CUDA_SIM_DEVICE", "sm_121"), ("CUDA_SIM_PROFILE", "none:arch-check=lookup")];
    refused(&run(tile, &lookup, "4", "1"), "cuModuleGetFunction", "209 ");
    let regular = run("ptx/add.sm_120.cubin", &[("CUDA_SIM_DEVICE", "sm_121")], "4", "1");
    assert_eq!(regular.status.code(), Some(0), "{regular:?}");
    refused(&run("ptx/add.sm_120.cubin", &[("CUDA_SIM_DEVICE", "sm_90")], "4", "1"), "cuModuleLoadData", "209 ");
}

#[test]
fn settings_that_make_no_sense_are_refused_with_a_word() {
    for (name, value) in [("CUDA_SIM_BUG", "no-such-bug"), ("CUDA_SIM_PROFILE", "fast"), ("CUDA_SIM_DEVICE", "big")] {
        let ended = run("tile/add.sm_120.cubin", &[(name, value)], "4", "1");
        refused(&ended, "cuInit", "999 CUDA_ERROR_UNKNOWN");
        assert!(ended.stderr.starts_with("cuda-sim: "), "{ended:?}");
    }
}

#[test]
fn struck_out_entry_points_are_found_by_no_one() {
    let bug = "missing-entry:entry=cuCtxCreate_v4+cuLibraryLoadData+cuKernelGetFunction";
    let ended = Run::new("lookup", "ptx/add.sm_120.cubin").env("CUDA_SIM_BUG", bug).output();
    let wanted = "\
        dlsym cuCtxCreate_v2 found\n\
        dlsym cuCtxCreate_v4 missing\n\
        dlsym cuLibraryLoadData missing\n\
        dlsym cuKernelGetFunction missing\n\
        dlsym cuLibraryGetKernel found\n\
        search cuCtxCreate 0 the third\n\
        search cuLibraryLoadData 1\n";
    assert_eq!(ended.stdout, wanted, "{ended:?}");
}

#[test]
fn a_name_that_is_not_there_fails_at_once_or_at_its_launch() {
    let strict = Run::new("absent", "ptx/add.sm_120.cubin").output();
    assert_eq!(strict.stdout, "look-up 500\n", "{strict:?}");
    let lenient = Run::new("absent", "ptx/add.sm_120.cubin").env("CUDA_SIM_PROFILE", "none:lookup=lenient").output();
    assert_eq!(lenient.stdout, "look-up 0\nlaunch 200\n", "{lenient:?}");
}
