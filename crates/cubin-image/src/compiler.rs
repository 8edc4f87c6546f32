//! Who made an image: source language, tool note, version.

use crate::reader;
use std::fmt;

/// A source language of the `LANGUAGE` attribute. Not a mark of Tile: 13.1 writes none and 13.2 writes PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// 3.
    Ptx,
    /// 7.
    TileIr,
    /// Any other number.
    Other(u32),
}

impl From<u32> for Language {
    fn from(number: u32) -> Language {
        match number {
            3 => Language::Ptx,
            7 => Language::TileIr,
            other => Language::Other(other),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Language::Ptx => f.write_str("PTX"),
            Language::TileIr => f.write_str("TILEIR"),
            Language::Other(number) => write!(f, "language {number}"),
        }
    }
}

/// What `.note.nv.tkinfo` says about the tool that wrote the machine code. Images of tileiras name `ptxas` here: it is
/// the back end of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNote {
    /// The tool, such as `ptxas`.
    pub tool: String,
    /// Its version text, such as `Cuda compilation tools, release 13.4, V13.4.92`.
    pub version: String,
    /// Its build text.
    pub build: String,
    /// Its command line, such as `-O 3 -arch sm_120a`.
    pub flags: String,
}

impl ToolNote {
    /// `13.4.92` out of `... V13.4.92`.
    pub fn version_number(&self) -> Option<&str> {
        let word = self.version.split([' ', ',']).rfind(|w| w.starts_with('V'))?;
        let number = &word[1..];
        let numeric = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        numeric.then_some(number)
    }

    /// The architecture that the tool was asked for, with its suffix: `sm_120a`.
    pub fn target(&self) -> Option<&str> {
        let mut words = self.flags.split_ascii_whitespace();
        words.find(|w| matches!(*w, "-arch" | "--gpu-name" | "-arch="))?;
        words.next()
    }

    /// Reads the notes of a `.note.nv.tkinfo` section; none where they are not of the known form.
    pub(crate) fn read(section: &[u8]) -> Option<ToolNote> {
        let (name_size, size) = (reader::u32_at(section, 0)? as usize, reader::u32_at(section, 4)? as usize);
        let start = 12usize.checked_add(name_size.checked_next_multiple_of(4)?)?;
        let body = section.get(start..start.checked_add(size)?)?;
        // Six words: version, then positions of five strings in what follows; the first is empty.
        let strings = body.get(24..)?;
        let text = |word: usize| {
            let bytes = reader::c_string(strings, reader::u32_at(body, 4 * word)? as usize, 4096)?;
            Some(String::from_utf8_lossy(bytes).trim().to_owned())
        };
        Some(ToolNote { tool: text(2)?, version: text(3)?, build: text(4)?, flags: text(5)? })
    }
}

/// Which compiler made an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerKind {
    /// The Tile IR compiler: the image carries a host object.
    Tileiras,
    /// The PTX compiler alone.
    Ptxas,
    /// The image does not say.
    Unknown,
}

impl CompilerKind {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            CompilerKind::Tileiras => "tileiras",
            CompilerKind::Ptxas => "ptxas",
            CompilerKind::Unknown => "unknown",
        }
    }
}

/// Compiler and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Which compiler.
    pub kind: CompilerKind,
    /// Its version. Of ptxas the exact one of the tool note (`13.4.92`). An image names tileiras's by release only (`13.4`,
    /// from `CUDA_API_VERSION`): its note speaks of the back end.
    pub version: Option<String>,
    /// Exact version of the back end that wrote a Tile image's machine code, from the tool note. Not always tileiras's own:
    /// 13.3.36 brings back end 13.3.33.
    pub back_end: Option<String>,
}

/// `0x86` → `13.4`.
pub(crate) fn api_version_text(version: u32) -> String {
    format!("{}.{}", version / 10, version % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_tool_note() {
        let strings = b"\0ptxas\0Cuda compilation tools, release 13.4, V13.4.92\0Build x\0-O 3 -arch sm_120a \0";
        let words = [2u32, 0, 1, 7, 54, 62];
        let mut note = Vec::new();
        for word in [12, 24 + strings.len() as u32, 2000] {
            note.extend_from_slice(&u32::to_le_bytes(word));
        }
        note.extend_from_slice(b"NVIDIA Corp\0");
        words.iter().for_each(|w| note.extend_from_slice(&w.to_le_bytes()));
        note.extend_from_slice(strings);
        let note = ToolNote::read(&note).unwrap();
        assert_eq!((note.tool.as_str(), note.version_number()), ("ptxas", Some("13.4.92")));
        assert_eq!((note.build.as_str(), note.target()), ("Build x", Some("sm_120a")));
        assert_eq!(api_version_text(0x86), "13.4");
    }
}
