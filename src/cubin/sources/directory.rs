//! A folder, or a pattern of file names: every image in it, in order of the names.

use super::{SourceError, Workshop};
use crate::cubin::image::Image;
use cubin_image::ImageKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Endings of the files that count.
const ENDINGS: [&str; 4] = ["cubin", "fatbin", "ptx", "tilebc"];
/// Most images of one folder or pattern.
const MOST: usize = 1024;

/// Whether a word is a pattern.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Reads them all.
pub fn load(word: &Path, workshop: &Workshop) -> Result<Vec<Image>, SourceError> {
    let files = if word.is_dir() { folder(word)? } else { pattern(word)? };
    if files.is_empty() {
        return Err(SourceError::Bad(format!(
            "{}: expected images ({}), found none",
            word.display(),
            ENDINGS.join(", ")
        )));
    }
    if files.len() > MOST {
        let found = files.len();
        return Err(SourceError::Bad(format!("{}: expected at most {MOST} images, found {found}", word.display())));
    }
    let loaded = files.iter().map(|file| super::load(file, None, workshop)).collect::<Result<Vec<_>, _>>()?;
    suitable(word, loaded.concat(), workshop)
}

/// The images that the device can load: a folder may well hold one for each architecture.
fn suitable(word: &Path, images: Vec<Image>, workshop: &Workshop) -> Result<Vec<Image>, SourceError> {
    let archs: BTreeSet<Option<u32>> = images.iter().map(|image| image.facts.arch).collect();
    if archs.len() < 2 {
        return Ok(images);
    }
    let device = (workshop.arch)().map_err(SourceError::Missing)?;
    let all = images.len();
    let suits = |image: &Image| match (image.facts.kind, image.facts.arch) {
        (ImageKind::Cubin, Some(arch)) if image.facts.tile => arch == device,
        (ImageKind::Cubin, Some(arch)) => arch / 10 == device / 10 && arch <= device,
        // The driver has compilers for the others, or chooses itself.
        _ => true,
    };
    let kept: Vec<Image> = images.into_iter().filter(suits).collect();
    if kept.is_empty() {
        return Err(SourceError::Missing(format!(
            "{}: none of its {all} images is for the device, sm_{device}",
            word.display()
        )));
    }
    (workshop.say)(&format!("{}: {} of its {all} images are for the device, sm_{device}", word.display(), kept.len()));
    Ok(kept)
}

fn folder(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let entries = std::fs::read_dir(folder).map_err(|e| SourceError::Bad(format!("{}: {e}", folder.display())))?;
    let counts =
        |path: &PathBuf| path.is_file() && path.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known));
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(counts).collect();
    files.sort();
    Ok(files)
}

fn pattern(word: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let text = word.to_string_lossy();
    let found = glob::glob(&text).map_err(|e| SourceError::Bad(format!("{text}: {e}")))?;
    Ok(found.flatten().filter(|path| path.is_file()).collect())
}
