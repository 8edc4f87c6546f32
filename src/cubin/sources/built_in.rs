//! Images that this program brings along: the add kernel of the report and its regular twin, for every architecture that
//! `cubins/` has.

use super::{SourceError, Workshop};
use crate::cubin::image::Image;
use std::path::Path;

/// An image for one architecture.
type ForArch = (u32, &'static [u8]);

macro_rules! committed {
    ($folder:literal: $($arch:literal),+) => {
        &[$(($arch, include_bytes!(concat!("../../../cubins/", $folder, "/add.sm_", $arch, ".cubin")))),+]
    };
}

/// Name, whether it must fit the device exactly, images.
const BUILT_IN: [(&str, bool, &[ForArch]); 2] = [
    ("tile:add", true, committed!("tile": 80, 86, 89, 90, 100, 103, 120, 121)),
    ("ptx:add", false, committed!("ptx": 80, 86, 89, 90, 100, 103, 120, 121)),
];

/// Every name.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, ..)| *name)
}

/// Whether a word is such a name, known or not.
pub fn is_name(word: &str) -> bool {
    word.split_once(':').is_some_and(|(kind, name)| matches!(kind, "tile" | "ptx") && !name.is_empty())
}

/// The image of that name for the device's architecture.
pub fn load(word: &Path, workshop: &Workshop) -> Result<Image, SourceError> {
    let text = word.to_string_lossy();
    let Some((_, exact, images)) = BUILT_IN.iter().find(|(name, ..)| *name == text) else {
        let known: Vec<&str> = names().collect();
        return Err(SourceError::Bad(format!(
            "{text}: expected a built-in image ({}), found another name",
            known.join(", ")
        )));
    };
    let device = (workshop.arch)().map_err(SourceError::Missing)?;
    let suits = |arch: u32| if *exact { arch == device } else { arch / 10 == device / 10 && arch <= device };
    let chosen = images.iter().filter(|(arch, _)| suits(*arch)).max_by_key(|(arch, _)| *arch);
    let Some((_, bytes)) = chosen else {
        let archs: Vec<String> = images.iter().map(|(arch, _)| format!("sm_{arch}")).collect();
        return Err(SourceError::Missing(format!("{text}: no image for sm_{device}; there are {}", archs.join(", "))));
    };
    Ok(Image::from_bytes(word, bytes.to_vec())?)
}
