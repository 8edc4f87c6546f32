//! `language-ptx`: the same image, whose kernels say that they were written in PTX.

use super::patch::{Patch, attribute_values};
use super::{Made, Results, Subject, Variant, as_original, cannot};

pub const VARIANT: Variant = Variant {
    name: "language-ptx",
    what: "whether the language attribute takes part: TILEIR (7) becomes PTX (3)",
    make,
};

/// The attribute's number.
const LANGUAGE: u8 = 0x66;
const TILEIR: u32 = 7;
const PTX: u32 = 3;

fn make(subject: &Subject) -> Results {
    let values = attribute_values(subject.cubin, subject.bytes, LANGUAGE);
    if values.is_empty() {
        return cannot("the image's kernels name no language (tileiras 13.1 writes none)");
    }
    let mut patch = Patch::new(subject);
    let mut changed = 0;
    for (offset, size) in values {
        for word in (0..size as u64 / 4).map(|index| offset + 4 * index) {
            let start = word as usize;
            if patch.bytes.get(start..start + 4) == Some(&TILEIR.to_le_bytes()[..]) {
                patch.put(word, &PTX.to_le_bytes());
                changed += 1;
            }
        }
    }
    if changed == 0 {
        return cannot("no kernel of the image names TILEIR as its language");
    }
    vec![Ok(Made::patched(VARIANT.name, patch.bytes, as_original(subject.cubin)))]
}
