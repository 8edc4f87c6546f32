//! `renamed`: the same image with other kernel names, of equal length.

use super::patch::{Patch, range};
use super::{Made, Results, Subject, Variant, as_original, cannot};
use std::collections::BTreeSet;

pub const VARIANT: Variant =
    Variant { name: "renamed", what: "whether the kernel's name takes part: its last characters change", make };

fn make(subject: &Subject) -> Results {
    let cubin = subject.cubin;
    let mut taken: BTreeSet<String> = cubin.kernels.iter().map(|k| k.name.clone()).collect();
    // Machine code holds no names; whatever looks like one there stays.
    let ranges: Vec<_> = cubin.sections.iter().filter(|s| !s.is_executable()).map(range).collect();
    let (mut patch, mut notes) = (Patch::new(subject), Vec::new());
    for kernel in &cubin.kernels {
        let Some(name) = new_name(&kernel.name, &taken) else {
            return cannot(format!("no other name of the same length is free for {}", kernel.name));
        };
        patch.replace_word(kernel.name.as_bytes(), name.as_bytes(), &ranges);
        notes.push(format!("{} is called {name}: run it with --kernel {name}", kernel.name));
        taken.insert(name);
    }
    if notes.is_empty() {
        return cannot("the image has no kernel");
    }
    let made = Made::patched(VARIANT.name, patch.bytes, as_original(cubin));
    vec![Ok(Made { notes, ..made })]
}

fn new_name(name: &str, taken: &BTreeSet<String>) -> Option<String> {
    let stem = name.get(..name.len().checked_sub(1)?)?;
    ('0'..='9').chain('A'..='Z').map(|last| format!("{stem}{last}")).find(|candidate| !taken.contains(candidate))
}
