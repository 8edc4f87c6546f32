//! `___NV_TILE_LAUNCH_META_DATA___`: a device symbol that tileiras 13.3 fills and 13.4 and later leave zero.
//!
//! 13.3: `u32[3]` of ones, `u32[3]` block size, then at 0x32 the number of tensor descriptors (u16), at 0x34 the size of
//! the host object (u32) and at 0x38 the host object itself once more, which thus lands in device memory.

use crate::host::HostObject;
use crate::reader;

/// The metadata symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileMetadata {
    /// Name of its section.
    pub section: String,
    /// Its size, bytes.
    pub size: u64,
    /// Its bytes stand in the image (13.3); else it is zeroed device memory.
    pub initialised: bool,
    /// Block size, threads.
    pub block: Option<[u32; 3]>,
    /// Number of tensor descriptors.
    pub descriptors: Option<u16>,
    /// Size of the copy of the host object inside it, and whether its bytes equal the host object's.
    pub host_copy: Option<(u32, bool)>,
}

impl TileMetadata {
    /// Reads the symbol's bytes, which are empty where the image holds none.
    pub(crate) fn read(section: String, size: u64, bytes: &[u8], host: Option<&HostObject>) -> TileMetadata {
        let word = |at| reader::u32_at(bytes, at);
        let copy = word(0x34).map(|length| {
            let data = reader::range(bytes, 0x38, u64::from(length));
            (length, host.is_some_and(|h| data == Some(h.bytes.as_slice())))
        });
        TileMetadata {
            section,
            size,
            initialised: !bytes.is_empty(),
            block: word(12).and_then(|x| Some([x, word(16)?, word(20)?])),
            descriptors: reader::u16_at(bytes, 0x32),
            host_copy: copy.filter(|(length, _)| *length != 0),
        }
    }
}
