//! `scrubbed`: the same image without the folder and file names of its sources, blanked at equal length.

use super::patch::{Patch, find, range};
use super::{Made, Results, Subject, Variant, as_original, cannot};
use std::collections::BTreeSet;

pub const VARIANT: Variant = Variant {
    name: "scrubbed",
    what: "nothing in behaviour: source names are blanked, so that the image can be passed on",
    make,
};

/// Names shorter than this are blanked where a line table holds them, and not looked for elsewhere.
const DISTINCT: usize = 5;
/// So many names are looked for: a hostile table may hold a million.
const MOST_NAMES: usize = 256;

fn make(subject: &Subject) -> Results {
    let cubin = subject.cubin;
    if cubin.source_paths.is_empty() {
        return cannot("the image gives no source names away");
    }
    let mut patch = Patch::new(subject);
    for path in &cubin.source_paths {
        patch.fill(path.offset, path.size, b'x');
    }
    // PTX and Tile IR text may name them once more.
    let texts: Vec<_> = cubin.sections.iter().filter(|s| s.name.contains("debug")).map(range).collect();
    let names = cubin.source_paths.iter().filter_map(|path| {
        let start = path.offset as usize;
        subject.bytes.get(start..start + path.size as usize)
    });
    let names: BTreeSet<&[u8]> =
        names.filter(|name| name.len() >= DISTINCT && !name.iter().all(|&b| b == b'x')).collect();
    for name in names.into_iter().take(MOST_NAMES) {
        for text in &texts {
            while let Some(at) = patch.bytes.get(text.clone()).and_then(|bytes| find(bytes, name)) {
                patch.fill((text.start + at) as u64, name.len() as u64, b'x');
            }
        }
    }
    vec![Ok(Made::patched(VARIANT.name, patch.bytes, as_original(cubin)))]
}
