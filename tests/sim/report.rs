//! The report's loop as a C++ program linked with `-lcuda`.

use crate::program::{Run, library};
use std::os::unix::process::ExitStatusExt as _;

/// Images of the add kernel for sm_120 with the block that each asks for: all compilers, and the regular twin.
const IMAGES: [(&str, &str); 6] = [
    ("tile/add.sm_120.cubin", "1"),
    ("tile-13.1/add.sm_120.cubin", "1"),
    ("tile-13.2/add.sm_120.cubin", "1"),
    ("tile-13.3/add.sm_120.cubin", "1"),
    ("tile-13.5/add.sm_120.cubin", "1"),
    ("ptx/add.sm_120.cubin", "128"),
];

#[test]
fn the_loop_gets_right_sums_from_the_images_of_every_compiler() {
    for (image, block) in IMAGES {
        let ended = Run::new("loop", image).arg(block).arg("40").arg("2").arg("4").output();
        assert_eq!(
            (ended.status.code(), ended.stdout.as_str()),
            (Some(0), "rounds 80 wrong 0\n"),
            "{image}: {ended:?}"
        );
    }
}

#[test]
fn the_loop_runs_from_ptx_and_from_a_fat_binary() {
    for (image, arch) in [("other/add.ptx", "sm_120"), ("other/add.fatbin", "sm_90"), ("other/add.fatbin", "sm_120")] {
        let run = Run::new("loop", image).env("CUDA_SIM_DEVICE", arch);
        let ended = run.arg("128").arg("20").arg("2").arg("4").output();
        assert_eq!(ended.stdout, "rounds 40 wrong 0\n", "{image} on {arch}: {ended:?}");
    }
}

#[test]
fn four_threads_keeping_all_and_a_guessed_profile_work_too() {
    let run = Run::new("loop", "tile/add.sm_120.cubin").env("CUDA_SIM_PROFILE", "rtx5090-guess");
    let ended = run.arg("1").arg("50").arg("4").arg("1").output();
    assert_eq!(ended.stdout, "rounds 200 wrong 0\n", "{ended:?}");
}

#[test]
fn the_library_is_named_as_the_real_one_and_carries_no_symbols_but_its_exports() {
    let bytes = std::fs::read(library().join("libcuda.so.1")).unwrap();
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
    use object::{Object as _, ObjectSymbol as _};
    assert!(file.symbols().next().is_none(), "stripped");
    assert!(file.build_id().unwrap().is_some_and(|id| id.len() == 20));
    let exported = |name: &str| file.dynamic_symbols().any(|s| s.is_definition() && s.name() == Ok(name));
    for name in ["cuInit", "cuModuleLoadData", "cuGetProcAddress_v2", "cuLibraryLoadData", "cuda_sim_stamp"] {
        assert!(exported(name), "{name}");
    }
    assert!(!exported("rust_eh_personality"), "nothing of Rust is exported");
}

#[test]
fn a_wrong_block_for_a_regular_kernel_is_refused() {
    let ended = Run::new("loop", "ptx/add.sm_120.cubin").arg("1").arg("1").arg("1").arg("4").output();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stdout.contains("cuLaunchKernel") && ended.stdout.contains("CUDA_ERROR_INVALID_VALUE"), "{ended:?}");
    assert_eq!(ended.status.signal(), None);
}
