//! Patching an image in place: bytes change, offsets and sizes of the file stay.

use super::Subject;
use cubin_image::{Attributes, Cubin, Section};

/// A copy of an image's bytes that is patched.
pub struct Patch {
    /// The bytes so far.
    pub bytes: Vec<u8>,
}

impl Patch {
    /// Starts from the image.
    pub fn new(subject: &Subject) -> Patch {
        Patch { bytes: subject.bytes.to_vec() }
    }

    /// Writes `with` at `offset`. Places come from a parsed image, so that they lie inside; one that does not is left out.
    pub fn put(&mut self, offset: u64, with: &[u8]) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(place) = start.checked_add(with.len()).and_then(|end| self.bytes.get_mut(start..end)) {
            place.copy_from_slice(with);
        }
    }

    /// Fills a range with one byte.
    pub fn fill(&mut self, offset: u64, size: u64, with: u8) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(place) = start.checked_add(size as usize).and_then(|end| self.bytes.get_mut(start..end)) {
            place.fill(with);
        }
    }

    /// Replaces `old` by `new`, of the same length, wherever it stands as a word of its own in the given ranges; how often
    /// it did.
    pub fn replace_word(&mut self, old: &[u8], new: &[u8], ranges: &[std::ops::Range<usize>]) -> usize {
        debug_assert_eq!(old.len(), new.len());
        let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'));
        let mut count = 0;
        for range in ranges {
            let mut at = range.start;
            while let Some(found) = self.bytes.get(at..range.end).and_then(|rest| find(rest, old)) {
                let (start, end) = (at + found, at + found + old.len());
                let before = start.checked_sub(1).and_then(|i| self.bytes.get(i));
                if !is_word(before) && !is_word(self.bytes.get(end)) {
                    self.bytes[start..end].copy_from_slice(new);
                    count += 1;
                }
                at = end;
            }
        }
        count
    }
}

/// Where `needle` first stands in `hay`.
pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    (!needle.is_empty()).then(|| hay.windows(needle.len()).position(|window| window == needle)).flatten()
}

/// The file range of a section's bytes.
pub fn range(section: &Section) -> std::ops::Range<usize> {
    if section.in_file() { section.offset as usize..(section.offset + section.size) as usize } else { 0..0 }
}

/// Attribute sections: `.nv.info*` and their copies `.nv.merc.nv.info*`.
pub fn attribute_sections(cubin: &Cubin) -> impl Iterator<Item = &Section> {
    cubin.sections.iter().filter(|s| s.name.starts_with(".nv.info") || s.name.starts_with(".nv.merc.nv.info"))
}

/// File offsets of the values of all sized attributes of that number, with their sizes.
pub fn attribute_values(cubin: &Cubin, image: &[u8], number: u8) -> Vec<(u64, usize)> {
    attribute_sections(cubin)
        .flat_map(|section| {
            let records = Attributes::new(section.data(image)).map_while(Result::ok);
            records
                .filter(|r| r.number == number && !r.value.is_empty())
                .map(|r| (section.offset + r.offset + 4, r.value.len()))
        })
        .collect()
}
