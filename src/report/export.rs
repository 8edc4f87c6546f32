//! `--export FMT=PATH`: a run in a format of other programs, one exporter a file.

use crate::store::RunData;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Writes a run, of which the folder may hold more, in one format.
type Exporter = fn(&RunData, &Path, &mut dyn Write) -> io::Result<()>;

/// The formats: the word for each, and who writes it.
const FORMATS: [(&str, Exporter); 2] =
    [("hlog", |run, _, out| super::hlog(run, out)), ("trace", |run, folder, out| super::trace(run, folder, out))];

/// A format and the file to write.
#[derive(Clone, Debug)]
pub struct Export {
    word: String,
    exporter: Exporter,
    path: PathBuf,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Export, String> {
        let (word, path) = text.split_once('=').unwrap_or((text, ""));
        let known = FORMATS.map(|(word, _)| word).join(", ");
        let Some((_, exporter)) = FORMATS.into_iter().find(|(name, _)| *name == word) else {
            return Err(format!("`{word}` is no format; there are {known}"));
        };
        if path.is_empty() {
            return Err(format!("say where to write it: {word}=PATH"));
        }
        Ok(Export { word: word.to_owned(), exporter, path: path.into() })
    }
}

impl Export {
    /// Writes the file.
    ///
    /// # Errors
    /// One line that names the format and the file.
    pub fn write(&self, run: &RunData, folder: &Path) -> Result<(), String> {
        let written = File::create(&self.path).and_then(|file| {
            let mut out = BufWriter::new(file);
            (self.exporter)(run, folder, &mut out)?;
            out.flush()
        });
        written.map_err(|e| format!("cannot write --export {}={}: {e}", self.word, self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_needs_a_name_that_is_known_and_a_path() {
        assert_eq!("hlog=a=b".parse::<Export>().unwrap().path, Path::new("a=b"));
        assert!("elf=x".parse::<Export>().unwrap_err().contains("hlog, trace"));
        assert!("trace".parse::<Export>().unwrap_err().contains("trace=PATH"));
    }
}
