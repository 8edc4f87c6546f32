//! Tile IR bytecode, as tileiras reads and cuda-tile writes it: version, and the kernels with their parameters.
//!
//! A file is a header of 12 bytes and sections (`u8` number with 0x80 where an alignment follows, LEB128 size), of which
//! functions (2), types (5) and strings (1) are read here. Taken from what cuda-tile writes in versions 13.1 to 13.4. Code
//! is not decoded: where a function's head holds something unknown, the list of kernels ends and says so.

use crate::error::{ErrorKind, ImageError};
use crate::kernel::Pointer;
use crate::reader;

/// First bytes of Tile IR bytecode.
pub(crate) const MAGIC: &[u8] = b"\x7fTileIR\0";
const HEADER: usize = 12;

/// Flag of a function: it is a kernel.
const KERNEL: u8 = 0x02;
/// Flag of a function: optimisation hints follow.
const HINTS: u8 = 0x04;
/// Most parameters of a kernel that are believed.
const MOST_PARAMETERS: u64 = 4096;

/// A kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileParameter {
    /// Offset in the parameter buffer, bytes, by natural alignment.
    pub offset: u32,
    /// Size, bytes.
    pub size: u32,
    /// Whether it is a device pointer: bytecode always says.
    pub pointer: Pointer,
}

/// A kernel in bytecode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileKernel {
    /// Its symbol.
    pub name: String,
    /// Its parameters in order; none where a type is not known. Hidden ones come into being when it is compiled.
    pub parameters: Option<Vec<TileParameter>>,
}

impl TileKernel {
    /// Bytes of its parameters.
    pub fn user_param_bytes(&self) -> u32 {
        self.parameters.iter().flatten().map(|p| p.offset + p.size).max().unwrap_or(0)
    }
}

/// Tile IR bytecode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileBytecode {
    /// Version of the bytecode: major, minor.
    pub version: (u8, u8),
    /// The word behind the version.
    pub tag: u16,
    /// Size of the whole, bytes.
    pub size: u64,
    /// Its kernels.
    pub kernels: Vec<TileKernel>,
    /// Whether these are all.
    pub complete: bool,
}

impl TileBytecode {
    /// Reads header, sections and kernels.
    ///
    /// # Errors
    /// When it is something else, or a section does not lie inside the file.
    pub fn parse(data: &[u8]) -> Result<TileBytecode, ImageError> {
        if !data.starts_with(MAGIC) {
            let kind = if data.is_empty() { ErrorKind::Empty } else { ErrorKind::WrongForm };
            let found = crate::ImageKind::detect(data).describe();
            return Err(ImageError::new(kind, 0, "Tile IR bytecode (7f 'TileIR' 00)", found));
        }
        let short = || {
            let found = format!("a file of {:#x} bytes", data.len());
            ImageError::truncated(MAGIC.len() as u64, "a version and a tag of 4 bytes", found)
        };
        let (major, minor) = (reader::u8_at(data, 8).ok_or_else(short)?, reader::u8_at(data, 9).ok_or_else(short)?);
        let tag = reader::u16_at(data, 10).ok_or_else(short)?;
        let sections = Sections::read(data)?;
        let (kernels, complete) = sections.kernels();
        Ok(TileBytecode { version: (major, minor), tag, size: data.len() as u64, kernels, complete })
    }
}

/// The sections that matter here.
#[derive(Default)]
struct Sections<'a> {
    strings: &'a [u8],
    functions: &'a [u8],
    types: &'a [u8],
}

impl<'a> Sections<'a> {
    fn read(data: &'a [u8]) -> Result<Sections<'a>, ImageError> {
        let mut sections = Sections::default();
        let mut cursor = Cursor { data, at: HEADER };
        // The end is marked by a section of number 0.
        while let Some(number) = cursor.byte().filter(|&n| n != 0) {
            let start = cursor.at as u64;
            let bytes = cursor.section(number).ok_or_else(|| {
                let found = format!("the end of a file of {:#x} bytes", data.len());
                ImageError::truncated(
                    start,
                    format!("a bytecode section (number {}) inside the file", number & 0x7f),
                    found,
                )
            })?;
            match number & 0x7f {
                1 => sections.strings = bytes,
                2 => sections.functions = bytes,
                5 => sections.types = bytes,
                _ => {}
            }
        }
        Ok(sections)
    }

    /// The kernels as far as they can be read, and whether these are all.
    fn kernels(&self) -> (Vec<TileKernel>, bool) {
        let (strings, types) = (Table::read(self.strings), Table::read(self.types));
        let mut cursor = Cursor { data: self.functions, at: 0 };
        let count = cursor.leb().unwrap_or(0);
        // Names and types may be named again and again: together they are no longer than a few times the file.
        let mut budget = 4 * (self.strings.len() + self.functions.len() + self.types.len());
        let mut kernels = Vec::new();
        for _ in 0..count {
            let Some(function) = cursor.function(&strings, &types) else { return (kernels, false) };
            let cost = function.name.len() + 16 * function.parameters.as_ref().map_or(1, Vec::len);
            let Some(rest) = budget.checked_sub(cost) else { return (kernels, false) };
            budget = rest;
            if function.is_kernel {
                kernels.push(TileKernel { name: function.name, parameters: function.parameters });
            }
        }
        (kernels, true)
    }
}

/// A section of things by number: count, padding to 4, offsets of 32 bits, bytes.
struct Table<'a> {
    offsets: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Table<'a> {
    fn read(section: &'a [u8]) -> Table<'a> {
        let mut cursor = Cursor { data: section, at: 0 };
        let count = cursor.leb().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let start = cursor.at.next_multiple_of(4);
        let end = count.checked_mul(4).and_then(|size| start.checked_add(size));
        let found = end.and_then(|end| Some((section.get(start..end)?, section.get(end..)?)));
        found.map_or(Table { offsets: &[], bytes: &[] }, |(offsets, bytes)| Table { offsets, bytes })
    }

    fn get(&self, index: u64) -> Option<&'a [u8]> {
        let index = usize::try_from(index).ok()?;
        let start = reader::u32_at(self.offsets, index.checked_mul(4)?)? as usize;
        let next = reader::u32_at(self.offsets, (index + 1).checked_mul(4)?);
        self.bytes.get(start..next.map_or(self.bytes.len(), |end| end as usize))
    }
}

struct Function {
    name: String,
    is_kernel: bool,
    parameters: Option<Vec<TileParameter>>,
}

struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = reader::u8_at(self.data, self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn leb(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(bytes).ok()?).filter(|&end| end <= self.data.len())?;
        self.at = end;
        Some(())
    }

    fn section(&mut self, number: u8) -> Option<&'a [u8]> {
        let size = self.leb()?;
        if number & 0x80 != 0 {
            let align = usize::try_from(self.leb()?).ok().filter(|a| a.is_power_of_two() && *a <= 4096)?;
            self.at = self.at.next_multiple_of(align);
        }
        let start = self.at;
        self.skip(size)?;
        self.data.get(start..self.at)
    }

    fn function(&mut self, strings: &Table, types: &Table) -> Option<Function> {
        let name = strings.get(self.leb()?)?;
        let signature = types.get(self.leb()?)?;
        let flags = self.byte()?;
        let _location = self.leb()?;
        if flags & HINTS != 0 {
            self.skip_attribute(0)?;
        }
        let body = self.leb()?;
        self.skip(body)?;
        let name = String::from_utf8_lossy(&name[..name.len().min(32 * 1024)]).into_owned();
        Some(Function { name, is_kernel: flags & KERNEL != 0, parameters: parameters(signature, types) })
    }

    /// Hints are dictionaries of dictionaries of numbers.
    fn skip_attribute(&mut self, depth: u32) -> Option<()> {
        match self.byte()? {
            // A number: its type and its value.
            0x01 => self.leb().and_then(|_| self.leb()).map(drop),
            0x0a | 0x0b if depth < 4 => {
                for _ in 0..self.leb()? {
                    self.leb()?;
                    self.skip_attribute(depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }
}

/// A function type is 0x10, a count, and the numbers of the parameters' types.
fn parameters(signature: &[u8], types: &Table) -> Option<Vec<TileParameter>> {
    let mut cursor = Cursor { data: signature, at: 0 };
    if cursor.byte()? != 0x10 {
        return None;
    }
    let count = cursor.leb().filter(|&n| n <= MOST_PARAMETERS)?;
    let (mut list, mut end) = (Vec::new(), 0u32);
    for _ in 0..count {
        let (size, pointer) = scalar(types.get(cursor.leb()?)?, types)?;
        let offset = end.next_multiple_of(size);
        end = offset + size;
        list.push(TileParameter { offset, size, pointer });
    }
    Some(list)
}

/// Size of a parameter of that type, a tile (0x0d) of rank 0; whether its element is a pointer (0x0c).
fn scalar(tile: &[u8], types: &Table) -> Option<(u32, Pointer)> {
    let mut cursor = Cursor { data: tile, at: 0 };
    if cursor.byte()? != 0x0d {
        return None;
    }
    let element = types.get(cursor.leb()?)?.first()?;
    Some(match element {
        0x0c => (8, Pointer::Sure),
        // i1, i8, and the two 8-bit floats
        0x00 | 0x01 | 0x0a | 0x0b => (1, Pointer::No),
        // i16, f16, bf16
        0x02 | 0x05 | 0x06 => (2, Pointer::No),
        // i32, f32, tf32
        0x03 | 0x07 | 0x08 => (4, Pointer::No),
        // i64, f64
        0x04 | 0x09 => (8, Pointer::No),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_and_refuses_a_stump() {
        let header = TileBytecode::parse(b"\x7fTileIR\0\x0d\x04\0\0\0").unwrap();
        assert_eq!((header.version, header.kernels.len(), header.complete), ((13, 4), 0, true));
        assert_eq!(TileBytecode::parse(b"\x7fTileIR\0\x0d").unwrap_err().kind, ErrorKind::Truncated);
        assert_eq!(TileBytecode::parse(b"").unwrap_err().kind, ErrorKind::Empty);
    }

    #[test]
    fn a_section_that_ends_outside_the_file_is_an_error_at_its_place() {
        let error = TileBytecode::parse(b"\x7fTileIR\0\x0d\x04\0\0\x02\xff\x7f\0").unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Truncated, 13));
    }
}
