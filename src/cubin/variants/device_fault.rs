//! `device-fault`: planted, for the laboratory. The first instruction of every kernel is a mark that the simulated driver
//! runs as an illegal access.

use super::patch::Patch;
use super::{Made, Prediction, Results, Subject, Variant, cannot};
use cubin_image::PLANTED_DEVICE_FAULT as PLANTED_FAULT;

pub const VARIANT: Variant = Variant {
    name: "device-fault",
    what: "a fault in the device code with a known owner: its kernels make an illegal access",
    make,
};

fn make(subject: &Subject) -> Results {
    let mut patch = Patch::new(subject);
    let kernels: Vec<_> = subject.cubin.kernels.iter().filter(|k| k.text_size >= PLANTED_FAULT.len() as u64).collect();
    if kernels.is_empty() {
        return cannot("the image has no kernel with machine code");
    }
    kernels.iter().for_each(|kernel| patch.put(kernel.text_offset, &PLANTED_FAULT));
    let mut made = Made::patched(VARIANT.name, patch.bytes, Prediction::DeviceFaults);
    made.notes.push("for the simulated driver only: a GPU would meet an illegal instruction".into());
    vec![Ok(made)]
}
