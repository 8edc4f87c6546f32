//! Folder and file names of sources that an image gives away in its line tables.
//!
//! Only the headers of the line programs are read (DWARF 2 to 4, which is what ptxas and tileiras write).

use crate::reader;

/// One name that an image gives away, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// A folder, else a file.
    pub is_folder: bool,
    /// The name.
    pub text: String,
    /// Index of the section that holds it.
    pub section: usize,
    /// File offset of its first byte.
    pub offset: u64,
    /// Its length, bytes; a NUL follows.
    pub size: u64,
}

/// Names in one line section that starts at `base` of the file. What does not parse ends the walk: a line table that the
/// driver ignores is no reason to refuse an image.
pub(crate) fn read_line_section(data: &[u8], section: usize, base: u64, found: &mut Vec<SourcePath>) {
    let mut at = 0usize;
    while let Some(length) = reader::u32_at(data, at) {
        let start = at + 4;
        let end = start.saturating_add(length as usize).min(data.len());
        let mut unit = Unit { data: &data[..end], at: start, section, base };
        unit.read(found);
        if end <= at + 4 {
            return;
        }
        at = end;
    }
}

struct Unit<'a> {
    data: &'a [u8],
    at: usize,
    section: usize,
    base: u64,
}

impl<'a> Unit<'a> {
    fn read(&mut self, found: &mut Vec<SourcePath>) -> Option<()> {
        let version = reader::u16_at(self.data, self.at)?;
        if !(2..=4).contains(&version) {
            return None;
        }
        // version, header_length, minimum_instruction_length, [maximum_operations], default_is_stmt, line_base, line_range
        self.at += 2 + 4 + 1 + usize::from(version == 4) + 3;
        let opcode_base = reader::u8_at(self.data, self.at)?;
        self.at += usize::from(opcode_base).max(1);
        while let Some((offset, folder)) = self.string()?.non_empty() {
            self.keep(true, offset, folder, found);
        }
        while let Some((offset, file)) = self.string()?.non_empty() {
            (0..3).try_for_each(|_| self.skip_leb())?;
            self.keep(false, offset, file, found);
        }
        Some(())
    }

    fn string(&mut self) -> Option<Found<'a>> {
        let offset = self.at;
        let bytes = reader::c_string(self.data, offset, 4096)?;
        self.at += bytes.len() + 1;
        Some(Found { offset, bytes })
    }

    fn skip_leb(&mut self) -> Option<()> {
        while reader::u8_at(self.data, self.at)? & 0x80 != 0 {
            self.at += 1;
        }
        self.at += 1;
        Some(())
    }

    fn keep(&self, is_folder: bool, offset: usize, bytes: &[u8], found: &mut Vec<SourcePath>) {
        // "." and names of the image's own sections tell nothing.
        if bytes == b"." || bytes.starts_with(b".nv") {
            return;
        }
        found.push(SourcePath {
            is_folder,
            text: String::from_utf8_lossy(bytes).into_owned(),
            section: self.section,
            offset: self.base + offset as u64,
            size: bytes.len() as u64,
        });
    }
}

struct Found<'a> {
    offset: usize,
    bytes: &'a [u8],
}

impl<'a> Found<'a> {
    fn non_empty(self) -> Option<(usize, &'a [u8])> {
        (!self.bytes.is_empty()).then_some((self.offset, self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_folder_and_file_of_a_version_2_header() {
        let mut unit = vec![2, 0, 0, 0, 0, 0, 1, 1, 0xfb, 14, 3, 0, 1];
        unit.extend_from_slice(b"/home/me\0.\0\0kernel.py\0\x01\x00\x00.nv.tileir.debug_txt.0\0\x02\x00\x00\0");
        let mut data = (unit.len() as u32).to_le_bytes().to_vec();
        data.extend_from_slice(&unit);
        let mut found = Vec::new();
        read_line_section(&data, 7, 0x100, &mut found);
        let names: Vec<_> = found.iter().map(|p| (p.is_folder, p.text.as_str(), p.offset, p.size)).collect();
        assert_eq!(names, [(true, "/home/me", 0x111, 8), (false, "kernel.py", 0x11d, 9)]);
    }
}
