//! `callback-fault`: planted, for the laboratory. The host callback of every kernel reads address 8.

use super::patch::Patch;
use super::{Made, Prediction, Results, Subject, Variant, cannot};
use cubin_image::{HostObject, Machine, SymbolPlace};

pub const VARIANT: Variant = Variant {
    name: "callback-fault",
    what: "a fault in the host object with a known owner: its callback reads a bad address",
    make,
};

/// `mov rax, [8]`, then `ud2`, which is never reached.
const READ_ADDRESS_8: [u8; 10] = [0x48, 0x8b, 0x04, 0x25, 0x08, 0, 0, 0, 0x0f, 0x0b];

fn make(subject: &Subject) -> Results {
    let Some(host) = subject.cubin.host_object() else { return cannot("the image has no host object") };
    if host.machine != Machine::X86_64 {
        return cannot(format!("the host object is for {}, the planted code for x86-64", host.machine.word()));
    }
    let places = callback_places(host);
    if places.is_empty() {
        return cannot("the host object's table has no callback of a known place");
    }
    let mut patch = Patch::new(subject);
    let copies = [Some(host.offset), host.second_copy.filter(|copy| copy.1).map(|copy| copy.0)];
    for copy in copies.into_iter().flatten() {
        places.iter().for_each(|place| patch.put(copy + place, &READ_ADDRESS_8));
    }
    vec![Ok(Made::patched(VARIANT.name, patch.bytes, Prediction::CallbackFaults))]
}

/// Offsets in the object of the first instructions of its callbacks, as far as no relocation would change them again.
fn callback_places(host: &HostObject) -> Vec<u64> {
    let names = host.callbacks.iter().flat_map(|t| &t.entries).filter_map(|e| e.on_arguments_change.as_deref());
    let place = |name: &str| {
        let symbol = host.symbol(name)?;
        let SymbolPlace::Section(index) = symbol.place else { return None };
        let section = host.sections.get(index)?;
        let end = symbol.value.checked_add(READ_ADDRESS_8.len() as u64)?;
        let untouched = |at: u64| at + 8 <= symbol.value || at >= end;
        let free = host.relocations.iter().filter(|r| r.section == index).all(|r| untouched(r.offset));
        (end <= section.size && free).then_some(section.offset + symbol.value)
    };
    names.filter_map(place).collect()
}
