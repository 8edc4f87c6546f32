//! Code that libcuda calls: emitted by nobody known, of an image, or no code at all.

use crate::victim::{faulting, names, only_fault, run, run_spec, spec};
use cubin_stress::evidence::{AddressClass, Evidence, Found, Frame};
use cubin_stress::vocabulary::Place;
use std::io::Write;

/// The stack is the faulting frame, one scanned frame in libcuda, then frames by unwind tables to the end.
fn assert_scanned_once(fault: &Evidence) {
    let thread = faulting(fault);
    let found: Vec<Found> = thread.frames.iter().map(|frame| frame.found).collect();
    assert_eq!(found[..2], [Found::Registers, Found::Scanned]);
    assert!(found[2..].iter().all(|found| *found == Found::Cfi) && found.len() > 4, "{found:?}");
    assert_eq!((thread.frames[1].place, names(thread)[1]), (Place::Libcuda, "cuLaunchKernel"));
    assert_eq!((names(thread)[2], names(thread)[3], thread.stack_end.as_str()), ("works", "main", "end of stack"));
}

#[test]
fn emitted_code_of_no_image_hides_only_its_own_frame() {
    let (outcome, _) = run("calls-callback", &["anonymous"]);
    let fault = only_fault(&outcome);
    assert_eq!((fault.place, fault.address_class.clone()), (Place::Anonymous, AddressClass::NullPage));
    assert_scanned_once(fault);
    assert!(!fault.executable_mappings.is_empty());
}

#[test]
fn a_jump_to_no_code_shows_who_jumped() {
    let (outcome, _) = run("calls-callback", &["jump"]);
    let fault = only_fault(&outcome);
    assert_eq!((fault.place, fault.address_class.clone()), (Place::Unmapped, AddressClass::NullPage));
    assert_scanned_once(fault);
}

#[test]
fn unmapped_code_of_no_image_is_not_taken_for_an_images() {
    let (outcome, _) = run("calls-callback", &["unmapped"]);
    let fault = only_fault(&outcome);
    assert_eq!((fault.place, fault.address_class.clone()), (Place::Unmapped, AddressClass::WasExecutable));
    assert_scanned_once(fault);
}

/// Runs the code section of an image's host object as it is, at its callback, with a bad parameter buffer.
fn host_code(image: &str, kernel: &str, known: bool) -> Evidence {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins").join(image);
    let bytes = std::fs::read(&path).unwrap();
    let cubin = cubin_image::Cubin::parse(&bytes).unwrap();
    let host = cubin.host_object().unwrap();
    let (index, section) = host.sections.iter().enumerate().find(|(_, s)| s.is_executable() && s.size > 0).unwrap();
    let entry = host.callbacks.as_ref().unwrap().entries.iter().find(|entry| entry.kernel == kernel).unwrap();
    let callback = host.symbol(entry.on_arguments_change.as_ref().unwrap()).unwrap();
    assert_eq!(callback.place, cubin_image::SymbolPlace::Section(index));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(section.data(&host.bytes)).unwrap();
    let file_path = file.path().to_str().unwrap().to_owned();
    let mut spec = spec("calls-callback", &["file", &file_path, &callback.value.to_string()]);
    spec.order.image_path = image.into();
    if known {
        spec.image = bytes.into();
    }
    only_fault(&run_spec(spec).0).clone()
}

#[test]
fn host_code_of_an_image_is_named_and_walked_by_its_own_tables() {
    for image in ["tile/matmul.sm_90.cubin", "tile/matmul.sm_120.cubin"] {
        let fault = host_code(image, "matmul", true);
        assert_eq!((fault.place, fault.address_class.clone()), (Place::HostObject, AddressClass::NullPage), "{image}");
        assert!(fault.place_note.as_ref().unwrap().contains(image), "{:?}", fault.place_note);
        let thread = faulting(&fault);
        let frame: &Frame = &thread.frames[0];
        assert!(names(thread)[0].contains("ON_ARGUMENTS_CHANGE") && frame.function.is_some(), "{:?}", names(thread));
        assert!(thread.frames[1..].iter().all(|frame| frame.found == Found::Cfi), "{image}: nothing needs scanning");
        assert_eq!((thread.frames[1].place, thread.stack_end.as_str()), (Place::Libcuda, "end of stack"));
        let module = &fault.modules[frame.module.unwrap()];
        assert_eq!((module.place, module.bias + frame.module_address.unwrap()), (Place::HostObject, frame.pc));
    }
}

#[test]
fn the_same_code_of_an_image_that_the_tool_was_not_given_is_anonymous() {
    let fault = host_code("tile/matmul.sm_120.cubin", "matmul", false);
    assert_eq!(fault.place, Place::Anonymous);
}
