//! PTX text: its header and the entries that it declares. A reader of declarations, not a PTX parser.

use crate::error::{ErrorKind, ImageError};
use crate::kernel::Pointer;

/// How far into a text its first directive is looked for, bytes.
const PREAMBLE: usize = 64 * 1024;

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxParameter {
    /// Offset in the parameter buffer, bytes, by PTX's alignment rules.
    pub offset: u32,
    /// Size, bytes.
    pub size: u32,
    /// Whether it is a device pointer.
    pub pointer: Pointer,
    /// `.hidden`: filled by the host object of the image that this text came from.
    pub hidden: bool,
}

/// An entry (kernel).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtxEntry {
    /// Its name.
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<PtxParameter>,
    /// `.reqntid`, threads.
    pub required_block: Option<[u32; 3]>,
    /// `.maxntid`, threads.
    pub max_block: Option<[u32; 3]>,
}

impl PtxEntry {
    /// Least size of an argument buffer, bytes.
    pub fn param_bytes(&self) -> u32 {
        self.parameters.iter().map(|p| p.offset.saturating_add(p.size)).max().unwrap_or(0)
    }
}

/// What a PTX text declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ptx {
    /// `.version`: major, minor.
    pub version: (u16, u16),
    /// First word of `.target`, such as `sm_120a`.
    pub target: String,
    /// `.address_size`, bits.
    pub address_size: Option<u16>,
    /// Its entries in order.
    pub entries: Vec<PtxEntry>,
}

impl Ptx {
    /// Reads a text; NUL bytes count as line ends, as in `.nv_debug_ptx_txt`.
    pub fn parse(data: &[u8]) -> Result<Ptx, ImageError> {
        if data.is_empty() {
            return Err(ImageError::new(ErrorKind::Empty, 0, "PTX text", "no bytes"));
        }
        if !looks_like_ptx(data) {
            let found = crate::ImageKind::detect(data).describe();
            return Err(ImageError::new(ErrorKind::WrongForm, 0, "PTX text that starts with .version", found));
        }
        let mut ptx = Ptx::default();
        let mut tokens = Tokens { data, at: 0 };
        while let Some(token) = tokens.next() {
            match token {
                b".version" => ptx.version = version(&mut tokens)?,
                b".target" if ptx.target.is_empty() => ptx.target = tokens.word(),
                b".address_size" => ptx.address_size = tokens.number().map(|n| n as u16),
                b".entry" => ptx.entries.push(entry(&mut tokens)),
                _ => {}
            }
        }
        if ptx.target.is_empty() {
            return Err(ImageError::malformed(data.len() as u64, "a .target directive", "the end of the text"));
        }
        Ok(ptx)
    }

    /// The number of the target's architecture: 120 of `sm_120a`.
    pub fn arch(&self) -> Option<u32> {
        let digits: String = self.target.strip_prefix("sm_")?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }
}

/// Whether the first directive of a text is `.version`.
pub(crate) fn looks_like_ptx(data: &[u8]) -> bool {
    let mut tokens = Tokens { data: &data[..data.len().min(PREAMBLE)], at: 0 };
    tokens.next() == Some(b".version")
}

fn version(tokens: &mut Tokens) -> Result<(u16, u16), ImageError> {
    let at = tokens.at as u64;
    let text = tokens.word();
    let parsed = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed.ok_or_else(|| ImageError::malformed(at, "a version such as 9.0 behind .version", format!("{text:?}")))
}

fn entry(tokens: &mut Tokens) -> PtxEntry {
    let mut entry = PtxEntry { name: tokens.word(), ..PtxEntry::default() };
    let mut parameter = Declaration::default();
    while let Some(token) = tokens.next() {
        match token {
            b"{" | b";" => break,
            b"," | b")" => parameter.finish(&mut entry.parameters),
            b".reqntid" => entry.required_block = Some(tokens.dimensions()),
            b".maxntid" => entry.max_block = Some(tokens.dimensions()),
            b".hidden" => parameter.hidden = true,
            b".param" => parameter.open = true,
            b".ptr" => parameter.pointer = true,
            b".align" => parameter.align(tokens.number().unwrap_or(1)),
            b"[" => parameter.count = tokens.number().unwrap_or(0),
            word if parameter.open && parameter.element == 0 => parameter.element = element_size(word),
            _ => {}
        }
    }
    entry
}

/// A parameter's declaration while it is read.
#[derive(Default)]
struct Declaration {
    open: bool,
    hidden: bool,
    pointer: bool,
    element: u32,
    count: u32,
    alignment: u32,
}

impl Declaration {
    /// Behind `.ptr`, `.align` speaks of what the pointer points to.
    fn align(&mut self, bytes: u32) {
        if !self.pointer {
            self.alignment = bytes;
        }
    }

    fn finish(&mut self, parameters: &mut Vec<PtxParameter>) {
        let Declaration { open, hidden, pointer, element, count, alignment } = std::mem::take(self);
        if !open || element == 0 {
            return;
        }
        let size = element.saturating_mul(count.max(1));
        let end = parameters.last().map_or(0, |p| p.offset.saturating_add(p.size));
        let alignment = alignment.max(element).min(4096);
        let offset = end.checked_next_multiple_of(alignment).unwrap_or(end);
        let pointer = match (pointer, size) {
            (true, _) => Pointer::Sure,
            (false, 8) => Pointer::Possible,
            (false, 9..) => Pointer::Inside,
            _ => Pointer::No,
        };
        parameters.push(PtxParameter { offset, size, pointer, hidden });
    }
}

fn element_size(word: &[u8]) -> u32 {
    match word {
        b".b8" | b".s8" | b".u8" => 1,
        b".b16" | b".s16" | b".u16" | b".f16" => 2,
        b".b32" | b".s32" | b".u32" | b".f32" | b".f16x2" => 4,
        b".b64" | b".s64" | b".u64" | b".f64" => 8,
        b".b128" => 16,
        _ => 0,
    }
}

/// Splits a text into words and single punctuation marks, without its comments.
struct Tokens<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        self.skip_blank();
        let rest = self.data.get(self.at..).filter(|r| !r.is_empty())?;
        let end = match rest[0] {
            b'"' => memchr::memchr(b'"', &rest[1..]).map_or(rest.len(), |n| n + 2),
            first if is_mark(first) => 1,
            _ => rest.iter().position(|&b| is_blank(b) || is_mark(b) || b == b'"').unwrap_or(rest.len()).max(1),
        };
        self.at += end;
        Some(&rest[..end])
    }

    fn skip_blank(&mut self) {
        while let Some(&byte) = self.data.get(self.at) {
            let rest = &self.data[self.at..];
            if is_blank(byte) {
                self.at += 1;
            } else if rest.starts_with(b"//") {
                self.at += memchr::memchr2(b'\n', 0, rest).unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                self.at += memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |n| n + 4);
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> String {
        let word = self.next().unwrap_or(&[]);
        String::from_utf8_lossy(&word[..word.len().min(32 * 1024)]).into_owned()
    }

    fn number(&mut self) -> Option<u32> {
        std::str::from_utf8(self.next()?).ok()?.parse().ok()
    }

    fn dimensions(&mut self) -> [u32; 3] {
        let mut dimensions = [1; 3];
        for dimension in &mut dimensions {
            let Some(number) = self.number() else { break };
            *dimension = number;
            let before = self.at;
            if self.next() != Some(b",") {
                self.at = before;
                break;
            }
        }
        dimensions
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b',' | b';')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// made by hand\n.version 9.0\n.target sm_90a, debug\n.address_size 64\n\
        .visible .entry add(\n .param .u64 .ptr .global .align 16 a,\n .param .u32 n,\n .param .u64 b,\n\
        .hidden .param .align 64 .b8 d[128]\n) .reqntid 128, 1, 1\n{ ret; }\n.entry second() { ret; }";

    #[test]
    fn reads_header_entries_and_parameter_layout() {
        let ptx = Ptx::parse(TEXT.as_bytes()).unwrap();
        assert_eq!((ptx.version, ptx.target.as_str(), ptx.arch()), ((9, 0), "sm_90a", Some(90)));
        let add = &ptx.entries[0];
        let layout: Vec<_> = add.parameters.iter().map(|p| (p.offset, p.size, p.pointer, p.hidden)).collect();
        assert_eq!(
            layout,
            [
                (0, 8, Pointer::Sure, false),
                (8, 4, Pointer::No, false),
                (16, 8, Pointer::Possible, false),
                (64, 128, Pointer::Inside, true),
            ]
        );
        assert_eq!((add.required_block, add.param_bytes()), (Some([128, 1, 1]), 192));
        assert_eq!((ptx.entries[1].name.as_str(), ptx.entries[1].parameters.len()), ("second", 0));
    }

    #[test]
    fn nul_bytes_separate_lines() {
        let ptx = Ptx::parse(TEXT.replace('\n', "\0").as_bytes()).unwrap();
        assert_eq!(ptx.entries.len(), 2);
    }

    #[test]
    fn text_without_a_target_is_refused() {
        assert_eq!(Ptx::parse(b".version 9.0\n").unwrap_err().kind, ErrorKind::Malformed);
        assert_eq!(Ptx::parse(b"#include <x>").unwrap_err().kind, ErrorKind::WrongForm);
    }
}
