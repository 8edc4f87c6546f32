//! `no-debug`: the same image without line information, PTX and Tile IR text.
//!
//! Offsets stay: the sections lose their bytes and their size, not their place in the table; the debug byte of `e_flags`
//! says that there is none.

use super::patch::Patch;
use super::{Made, Results, Subject, Variant, as_original, cannot};
use cubin_image::Section;

pub const VARIANT: Variant = Variant {
    name: "no-debug",
    what: "whether debug information takes part: line tables, PTX and Tile IR text are emptied",
    make,
};

/// `e_flags` byte 3 of an image without debug information.
const NONE: u8 = 0x06;

fn make(subject: &Subject) -> Results {
    let cubin = subject.cubin;
    let debug: Vec<usize> = (0..cubin.sections.len()).filter(|&i| is_debug(&cubin.sections[i])).collect();
    if debug.is_empty() {
        return cannot("the image has no debug information");
    }
    let mut patch = Patch::new(subject);
    for &index in &debug {
        empty(&mut patch, &cubin.sections[index]);
    }
    // Relocations of an emptied section would lie outside it.
    for section in &cubin.sections {
        let of_debug = section.name.contains("rel") && debug.contains(&(section.info as usize));
        if of_debug {
            empty(&mut patch, section);
        }
    }
    patch.put(0x33, &[NONE]);
    vec![Ok(Made::patched(VARIANT.name, patch.bytes, as_original(cubin)))]
}

/// `.debug_frame` is no debug information here: images compiled without any have it.
fn is_debug(section: &Section) -> bool {
    let name = section.name.strip_prefix(".nv.merc").unwrap_or(&section.name);
    let marks = [".debug_", ".nv_debug_", ".nv.tileir.debug_"];
    marks.iter().any(|mark| name.starts_with(mark)) && name != ".debug_frame"
}

fn empty(patch: &mut Patch, section: &Section) {
    if section.in_file() {
        patch.fill(section.offset, section.size, 0);
        patch.put(section.header_offset + 0x20, &0u64.to_le_bytes());
    }
}
