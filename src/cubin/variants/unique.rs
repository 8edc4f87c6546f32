//! `unique`: images that differ in one byte of a note and in nothing that runs: no two loads share content.

use super::patch::Patch;
use super::{Made, Results, Subject, Variant, as_original, cannot};
use cubin_image::Cubin;

pub const VARIANT: Variant =
    Variant { name: "unique", what: "whether equal content is shared: one byte of the tool note differs", make };

/// The byte that may take any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueByte {
    /// Its file offset.
    pub offset: u64,
}

impl UniqueByte {
    /// The last byte of the tool note's build text, or, where there is no such note, none.
    pub fn of(cubin: &Cubin, image: &[u8]) -> Option<UniqueByte> {
        let build = cubin.tool.as_ref().map(|tool| tool.build.as_str()).filter(|b| !b.is_empty())?;
        let note = cubin.section(".note.nv.tkinfo")?;
        let at = super::patch::find(note.data(image), build.as_bytes())?;
        Some(UniqueByte { offset: note.offset + (at + build.len() - 1) as u64 })
    }
}

fn make(subject: &Subject) -> Results {
    let Some(byte) = UniqueByte::of(subject.cubin, subject.bytes) else {
        return cannot("the image has no tool note (.note.nv.tkinfo) to differ in");
    };
    let mut patch = Patch::new(subject);
    let value = subject.bytes.get(byte.offset as usize).map_or(0, |b| b ^ 1);
    patch.put(byte.offset, &[value]);
    let mut made = Made::patched(VARIANT.name, patch.bytes, as_original(subject.cubin));
    made.notes.push(format!("the byte at {:#x} may take any value: 256 images of different content", byte.offset));
    vec![Ok(made)]
}
