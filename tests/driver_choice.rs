//! Which driver library is chosen, and what a worker makes of NVIDIA's real one on a machine without a GPU.
//!
//! The real library is used where this machine has one, or where `STRESS_TEST_LIBCUDA` names one (for example unpacked from
//! Debian's package libcuda1, component non-free); otherwise its test says that it is skipped.

mod child;

use child::{committed, order};
use cubin_stress::driver::{self, Unusable};
use cubin_stress::journal::NoteKind;
use cubin_stress::plan::{DriverChoice, DriverKind, Workload};
use std::path::PathBuf;

#[test]
fn the_simulated_driver_is_known_by_its_stamp_whatever_its_file_is_called() {
    let chosen = driver::choose(&DriverChoice::Sim).unwrap();
    assert_eq!((chosen.kind, chosen.fallback), (DriverKind::Simulated, false));
    assert!(chosen.identity.build_id.is_some());
    assert!(chosen.identity.version.is_some());
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libcuda.so.1");
    std::fs::copy(&chosen.path, &copy).unwrap();
    for path in [folder.path().to_path_buf(), copy.clone()] {
        let found = driver::choose(&DriverChoice::Path(path)).unwrap();
        assert_eq!((found.kind, found.path), (DriverKind::Simulated, copy.clone()));
        assert_eq!(found.identity.build_id, chosen.identity.build_id);
    }
}

#[test]
fn a_path_without_a_driver_is_unusable_and_says_what_to_do() {
    for path in ["/nowhere/libcuda.so.1", "/dev/null", "Cargo.toml"] {
        let error = driver::choose(&DriverChoice::Path(path.into())).unwrap_err();
        assert!(matches!(error, Unusable::NotADriver(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("--driver sim") && text.contains(path), "{text}");
    }
}

#[test]
fn auto_takes_the_simulated_driver_only_where_there_is_neither_driver_nor_device() {
    let auto = driver::choose(&DriverChoice::Auto);
    match driver::choose(&DriverChoice::Real) {
        Ok(real) => assert_eq!(auto.unwrap().path, real.path),
        Err(Unusable::NoLibrary { device: None }) => {
            let auto = auto.unwrap();
            assert!(auto.fallback && auto.kind == DriverKind::Simulated);
        }
        Err(Unusable::NoLibrary { device: Some(_) }) => assert!(matches!(auto, Err(Unusable::NoLibrary { .. }))),
        // Only a simulated library in the loader's path, or a broken one.
        Err(_) => assert!(auto.map_or(true, |chosen| chosen.kind == DriverKind::Simulated && !chosen.fallback)),
    }
}

/// NVIDIA's library, where one is at hand.
fn real() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("STRESS_TEST_LIBCUDA") {
        return Some(named.into());
    }
    driver::choose(&DriverChoice::Real).ok().map(|chosen| chosen.path)
}

#[test]
fn nvidias_library_without_a_gpu_is_refused_with_code_and_advice() {
    let Some(path) = real() else {
        eprintln!("skipped: no real libcuda on this machine, and STRESS_TEST_LIBCUDA names none");
        return;
    };
    let chosen = driver::choose(&DriverChoice::Path(path)).unwrap();
    assert_eq!(chosen.kind, DriverKind::Real);
    assert!(chosen.identity.build_id.is_some());
    let mut order = order("tile/add.sm_120.cubin", Workload::default(), 1.0);
    order.driver = chosen.path;
    order.image_path = committed("tile/add.sm_120.cubin");
    let left = child::run(&order, &[]);
    if left.status.code() == Some(0) {
        eprintln!("skipped: this machine has a GPU that runs the image");
        return;
    }
    assert_eq!(left.status.code(), Some(3), "{}", left.told());
    let notes = left.notes(NoteKind::SetupFailed);
    assert_eq!(notes.len(), 1, "{}", left.told());
    if notes[0].code == 100 {
        for part in ["CUDA_ERROR_NO_DEVICE", "cuInit answered 100", "--driver sim"] {
            assert!(notes[0].text.contains(part), "{}", notes[0].text);
        }
    }
}
