//! The images committed under `cubins/`, for tests that read them all.

use std::path::{Path, PathBuf};

/// Folder of the committed images.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cubins")
}

/// Every committed image with its path relative to [`folder`], in order.
pub fn images() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    collect(&folder(), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no images under {}", folder().display());
    found
}

fn collect(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if ["cubin", "fatbin", "ptx", "tilebc"].iter().any(|e| path.extension().is_some_and(|x| x == *e)) {
            let name = path.strip_prefix(self::folder()).unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).unwrap()));
        }
    }
}
