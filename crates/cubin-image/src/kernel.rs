//! A kernel: its parameters and what it asks of a launch.

use crate::attribute::{Attribute, Attributes, number};
use crate::error::ImageError;
use crate::reader;

/// Whether a parameter is a device pointer, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// The image names an address space for it.
    Sure,
    /// Eight bytes without an address space: a pointer or a 64-bit number (regular images below sm_100 never say).
    Possible,
    /// Larger than eight bytes: a structure, which may hold pointers that no image tells of.
    Inside,
    /// Smaller than a pointer.
    No,
}

/// The laboratory's mark at the start of a kernel's machine code (one instruction's worth; no compiler writes it): the
/// simulated driver runs such a kernel as an illegal memory access.
pub const PLANTED_DEVICE_FAULT: [u8; 16] = *b"illegal-access!\0";

/// One kernel parameter that the image lists. Hidden ones (Tile's tensor descriptors) are not listed: see
/// [`Kernel::hidden_bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Position among the parameters, from 0.
    pub ordinal: u16,
    /// Offset in the parameter buffer, bytes.
    pub offset: u16,
    /// Size, bytes.
    pub size: u32,
    /// Address space as in the record: 0 none named, 1 local, 2 shared, 4 global or constant, 5 generic.
    pub space: u8,
    /// Binary logarithm of the alignment of what it points to; 0 where none is promised.
    pub log2_alignment: u8,
}

impl Parameter {
    /// Whether it is a device pointer.
    pub fn pointer(&self) -> Pointer {
        match (self.space, self.size) {
            (1.., 8) => Pointer::Sure,
            (0, 8) => Pointer::Possible,
            (_, 9..) => Pointer::Inside,
            _ => Pointer::No,
        }
    }

    fn v1(record: &Attribute) -> Option<Parameter> {
        let word = record.word(2)?;
        Some(Parameter {
            ordinal: reader::u16_at(record.value, 4)?,
            offset: reader::u16_at(record.value, 6)?,
            size: word >> 18,
            space: (word >> 8 & 0xf) as u8,
            log2_alignment: word as u8,
        })
    }

    fn v2(record: &Attribute) -> Option<Parameter> {
        Some(Parameter {
            ordinal: reader::u16_at(record.value, 4)?,
            offset: reader::u16_at(record.value, 6)?,
            size: u32::from(reader::u16_at(record.value, 8)?),
            log2_alignment: reader::u8_at(record.value, 10)?,
            space: reader::u8_at(record.value, 11)?,
        })
    }
}

/// A kernel that a driver can look up in the image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// Bytes of constant bank 0 that hold its parameters, hidden ones included: the least size of an argument buffer
    /// (`CBANK_PARAM_SIZE`).
    pub cbank_param_size: u32,
    /// Where they start in that bank (`PARAM_CBANK`), bytes; none where the image does not say.
    pub param_base: Option<u32>,
    /// Required block size (`REQNTID`), threads.
    pub required_block: Option<[u32; 3]>,
    /// Upper bound of the block size (`MAX_THREADS`), threads.
    pub max_block: Option<[u32; 3]>,
    /// Cluster size (`CTA_PER_CLUSTER`), blocks.
    pub cluster: Option<[u32; 3]>,
    /// A grid is counted in clusters (`BLOCKS_ARE_CLUSTERS`).
    pub blocks_are_clusters: bool,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// The most registers that it was compiled for (`MAXREG_COUNT`).
    pub max_registers: Option<u32>,
    /// Stack frame, bytes.
    pub frame_size: Option<u32>,
    /// Least stack, bytes.
    pub min_stack_size: Option<u32>,
    /// Static shared memory, bytes.
    pub shared_size: u64,
    /// Constant bank 0 of this kernel (`.nv.constant0.*`), bytes.
    pub constant_size: u64,
    /// File offset of its machine code.
    pub text_offset: u64,
    /// Size of its machine code, bytes.
    pub text_size: u64,
    /// Source languages in the order of the record (`LANGUAGE`).
    pub languages: Vec<u32>,
    /// `CUDA_API_VERSION`, for example 0x86 for 13.4.
    pub api_version: Option<u32>,
}

impl Kernel {
    /// Bytes of the parameters that the image lists: where hidden ones may begin.
    pub fn user_param_bytes(&self) -> u32 {
        self.parameters.iter().map(|p| u32::from(p.offset).saturating_add(p.size)).max().unwrap_or(0)
    }

    /// Bytes behind the listed parameters that only the host object's callback fills.
    pub fn hidden_bytes(&self) -> u32 {
        self.cbank_param_size.saturating_sub(self.user_param_bytes())
    }

    /// Takes what the records of its own `.nv.info.<kernel>` say; offsets in errors are those in the section.
    pub(crate) fn read_attributes(&mut self, section: &[u8]) -> Result<(), ImageError> {
        for record in Attributes::new(section) {
            let record = record?;
            self.read_attribute(&record).ok_or_else(|| {
                let name = crate::attribute_name(record.number).unwrap_or("attribute");
                let found = format!("{:#x} bytes", record.value.len());
                ImageError::malformed(record.offset, format!("a {name} record of its usual size"), found)
            })?;
        }
        self.parameters.sort_by_key(|p| p.ordinal);
        Ok(())
    }

    fn read_attribute(&mut self, record: &Attribute) -> Option<()> {
        match record.number {
            number::KPARAM_INFO => self.parameters.push(Parameter::v1(record)?),
            number::KPARAM_INFO_V2 => self.parameters.push(Parameter::v2(record)?),
            number::CBANK_PARAM_SIZE => self.cbank_param_size = u32::from(record.half),
            number::MAXREG_COUNT => self.max_registers = Some(u32::from(record.half)),
            number::PARAM_CBANK => {
                let word = record.word(1)?;
                self.param_base = Some(word & 0xffff);
                self.cbank_param_size = self.cbank_param_size.max(word >> 16);
            }
            number::REQNTID => self.required_block = Some(three(record)?),
            number::MAX_THREADS => self.max_block = Some(three(record)?),
            number::CTA_PER_CLUSTER => self.cluster = Some(three(record)?),
            number::BLOCKS_ARE_CLUSTERS => self.blocks_are_clusters = true,
            number::LANGUAGE => self.languages.extend(record.words()),
            number::CUDA_API_VERSION => self.api_version = Some(record.word(0)?),
            _ => {}
        }
        Some(())
    }
}

fn three(record: &Attribute) -> Option<[u32; 3]> {
    Some([record.word(0)?, record.word(1)?, record.word(2)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_ways_to_state_a_parameter() {
        // Ordinal 1 at 8: four bytes; ordinal 0 at 0: a global pointer.
        let v1 = [
            4, 0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0xf0, 0x11, 0, //
            4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0xf4, 0x21, 0, //
            3, 0x19, 0x40, 0,
        ];
        let mut kernel = Kernel::default();
        kernel.read_attributes(&v1).unwrap();
        assert_eq!(kernel.parameters[0].pointer(), Pointer::Sure);
        assert_eq!(kernel.parameters[0].log2_alignment, 4);
        assert_eq!((kernel.parameters[1].size, kernel.parameters[1].pointer()), (4, Pointer::No));
        assert_eq!((kernel.user_param_bytes(), kernel.hidden_bytes()), (12, 0x34));

        let v2 = [4, 0x45, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 3, 0];
        let mut kernel = Kernel::default();
        kernel.read_attributes(&v2).unwrap();
        assert_eq!(kernel.parameters[0].pointer(), Pointer::Possible);
        assert_eq!(kernel.parameters[0].log2_alignment, 3);
    }
}
