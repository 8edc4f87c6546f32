//! `no-host-object`: the same image, whose host object no driver recognises any more.
//!
//! Type and name of `.nv.host` and of its second copy are changed; its bytes stay where they are.

use super::patch::Patch;
use super::{Made, Prediction, Results, Subject, Variant, cannot};
use cubin_image::SectionKind;

pub const VARIANT: Variant = Variant {
    name: "no-host-object",
    what: "whether the host object takes part: its section's type and name are neutralised",
    make,
};

/// `SHT_PROGBITS`: bytes without a meaning to a loader.
const PLAIN: u32 = 1;

fn make(subject: &Subject) -> Results {
    let cubin = subject.cubin;
    let sections: Vec<_> = cubin.sections.iter().filter(|s| s.kind == SectionKind::EmbeddedHost).collect();
    if sections.is_empty() {
        return cannot("the image has no host object");
    }
    let mut patch = Patch::new(subject);
    for section in &sections {
        patch.put(section.header_offset + 4, &PLAIN.to_le_bytes());
    }
    // One change of a shared tail serves both names: ".nv.host" may stand inside ".nv.merc.nv.host".
    let names = cubin.sections.iter().filter(|s| s.kind == SectionKind::Strings).map(super::patch::range);
    patch.replace_word(b"nv.host", b"nv.hos_", &names.collect::<Vec<_>>());
    let mut made = Made::patched(VARIANT.name, patch.bytes, Prediction::RunsAsRegular);
    for kernel in cubin.kernels.iter().filter(|k| k.hidden_bytes() > 0) {
        let (name, bytes) = (&kernel.name, kernel.hidden_bytes());
        made.notes
            .push(format!("on a GPU, {name} would read {bytes} bytes of descriptors that nothing writes any more"));
    }
    vec![Ok(made)]
}
