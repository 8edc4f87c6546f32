//! `.nv.info` records: what the compiler tells the driver about a kernel.
//!
//! A record is `u8 format, u8 attribute, u16 half`; a sized one is followed by `half` bytes of value, padded to 4.

use crate::error::ImageError;
use crate::reader;

/// Numbers of the attributes that this crate reads.
pub(crate) mod number {
    pub const MAX_THREADS: u8 = 0x05;
    pub const PARAM_CBANK: u8 = 0x0a;
    pub const REQNTID: u8 = 0x10;
    pub const FRAME_SIZE: u8 = 0x11;
    pub const MIN_STACK_SIZE: u8 = 0x12;
    pub const KPARAM_INFO: u8 = 0x17;
    pub const CBANK_PARAM_SIZE: u8 = 0x19;
    pub const MAXREG_COUNT: u8 = 0x1b;
    pub const REGCOUNT: u8 = 0x2f;
    pub const CUDA_API_VERSION: u8 = 0x37;
    pub const CTA_PER_CLUSTER: u8 = 0x3d;
    pub const KPARAM_INFO_V2: u8 = 0x45;
    pub const BLOCKS_ARE_CLUSTERS: u8 = 0x5b;
    pub const LANGUAGE: u8 = 0x66;
}

/// How a record carries its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No value.
    None,
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// A counted value.
    Sized,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// How it carries its value.
    pub format: Format,
    /// Its number; [`attribute_name`] knows some.
    pub number: u8,
    /// The value of a byte or half record.
    pub half: u16,
    /// The value of a sized record.
    pub value: &'a [u8],
    /// Offset of the record in the section.
    pub offset: u64,
}

impl Attribute<'_> {
    /// The sized value's `index`-th 32-bit word.
    pub fn word(&self, index: usize) -> Option<u32> {
        reader::u32_at(self.value, index.checked_mul(4)?)
    }

    /// All 32-bit words of the sized value.
    pub fn words(&self) -> impl Iterator<Item = u32> + '_ {
        self.value.chunks_exact(4).filter_map(|c| reader::u32_at(c, 0))
    }
}

/// Walks the records of a `.nv.info` section.
pub struct Attributes<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    /// Starts at the first record of a section's bytes.
    pub fn new(data: &'a [u8]) -> Attributes<'a> {
        Attributes { data, at: 0 }
    }

    fn read(&mut self) -> Result<Attribute<'a>, ImageError> {
        let at = self.at;
        let offset = at as u64;
        // Whatever is wrong with a record, the walk ends with it.
        self.at = self.data.len();
        let short = || ImageError::truncated(offset, "a whole attribute record", "the end of the section");
        let (format, number) = (reader::u8_at(self.data, at), reader::u8_at(self.data, at + 1));
        let half = reader::u16_at(self.data, at + 2).ok_or_else(short)?;
        let (format, number) = (format.ok_or_else(short)?, number.ok_or_else(short)?);
        let format = match format {
            1 => Format::None,
            2 => Format::Byte,
            3 => Format::Half,
            4 => Format::Sized,
            other => {
                let found = format!("{other:#04x}");
                return Err(ImageError::malformed(offset, "an attribute record of format 1 to 4", found));
            }
        };
        let mut attribute = Attribute { format, number, half, value: &[], offset };
        let mut next = at + 4;
        if format == Format::Sized {
            let size = usize::from(half);
            attribute.value = self.data.get(next..next + size).ok_or_else(|| {
                let found = format!("{:#x} bytes before the end of the section", self.data.len() - next);
                ImageError::truncated(offset + 2, format!("an attribute value of {size:#x} bytes"), found)
            })?;
            next += size.next_multiple_of(4);
        }
        self.at = next.min(self.data.len());
        Ok(attribute)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, ImageError>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.at < self.data.len()).then(|| self.read())
    }
}

/// The name that `cuobjdump -elf` prints for an attribute.
pub fn attribute_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0x05 => "MAX_THREADS",
        0x0a => "PARAM_CBANK",
        0x0f => "EXTERNS",
        0x10 => "REQNTID",
        0x11 => "FRAME_SIZE",
        0x12 => "MIN_STACK_SIZE",
        0x17 => "KPARAM_INFO",
        0x19 => "CBANK_PARAM_SIZE",
        0x1b => "MAXREG_COUNT",
        0x1c => "EXIT_INSTR_OFFSETS",
        0x1e => "CRS_STACK_SIZE",
        0x28 => "COOP_GROUP_INSTR_OFFSETS",
        0x29 => "COOP_GROUP_MASK_REGIDS",
        0x2f => "REGCOUNT",
        0x31 => "INT_WARP_WIDE_INSTR_OFFSETS",
        0x34 => "INDIRECT_BRANCH_TARGETS",
        0x36 => "SW_WAR",
        0x37 => "CUDA_API_VERSION",
        0x38 => "NUM_MBARRIERS",
        0x39 => "MBARRIER_INSTR_OFFSETS",
        0x3d => "CTA_PER_CLUSTER",
        0x41 => "RESERVED_SMEM_USED",
        0x45 => "KPARAM_INFO_V2",
        0x4a => "VRC_CTA_INIT_COUNT",
        0x4c => "NUM_BARRIERS",
        0x4f => "AT_ENTRY_FRAGMENTS",
        0x50 => "SPARSE_MMA_MASK",
        0x51 => "TCGEN05_1CTA_USED",
        0x52 => "TCGEN05_2CTA_USED",
        0x54 => "REG_RECONFIG",
        0x55 => "ANNOTATIONS",
        0x5b => "BLOCKS_ARE_CLUSTERS",
        0x66 => "LANGUAGE",
        0x6b => "NVSAL_SW_WAR",
        0x6d => "PREEXIT_USED",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_every_format_and_pads_sized_values() {
        let data =
            [1, 0x5b, 0, 0, 2, 0x4c, 2, 0, 3, 0x19, 0x48, 0, 4, 0x66, 5, 0, 7, 0, 0, 0, 9, 0, 0, 0, 1, 0x41, 0, 0];
        let records: Vec<_> = Attributes::new(&data).collect::<Result<_, _>>().unwrap();
        assert_eq!(records.iter().map(|r| r.number).collect::<Vec<_>>(), [0x5b, 0x4c, 0x19, 0x66, 0x41]);
        assert_eq!(records[2].half, 0x48);
        assert_eq!(records[3].value, [7, 0, 0, 0, 9]);
        assert_eq!(records[3].words().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn a_value_longer_than_the_section_ends_the_walk_with_an_error() {
        let mut walk = Attributes::new(&[4, 0x17, 12, 0, 1, 2]);
        let error = walk.next().unwrap().unwrap_err();
        assert_eq!(error.offset, 2);
        assert!(walk.next().is_none());
    }
}
