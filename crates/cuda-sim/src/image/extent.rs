//! How long an image is: `cuModuleLoadData` is handed an address and no length.
#![allow(unsafe_code)] // reads what the program points to, as far as the image itself says that it goes

use crate::error::{Answer, Code};

/// An image that claims more than this is refused, bytes.
const LARGEST: u64 = 1 << 30;
/// First word of the structure that host programs wrap around a fat binary.
const WRAPPER: u32 = 0x4662_43b1;
/// First word of a fat binary.
const FATBIN: u32 = 0xba55_ed50;

/// The bytes of the image at `at`, through the wrapper of a fat binary if it stands there.
///
/// # Safety
/// `at` must point to an image that is as long as it says, or to text that ends with NUL.
pub unsafe fn extent<'a>(at: *const u8) -> Answer<&'a [u8]> {
    if at.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for the image; volatile, so that the first touch of it happens here.
    let first = unsafe { [at.read_volatile(), at.add(1).read(), at.add(2).read(), at.add(3).read()] };
    let word = u32::from_le_bytes(first);
    // SAFETY: as above: each form states its own length.
    unsafe {
        match (word, &first) {
            (WRAPPER, _) => extent(at.add(8).cast::<*const u8>().read_unaligned()),
            (FATBIN, _) => {
                let header = u64::from(read::<u16>(at, 6));
                bounded(at, header.saturating_add(read::<u64>(at, 8)))
            }
            (_, b"\x7fELF") => bounded(at, elf_length(at)),
            (_, b"\x7fTil") => bounded(at, bytecode_length(at)?),
            _ => Ok(std::slice::from_raw_parts(at, libc::strnlen(at.cast(), LARGEST as usize))),
        }
    }
}

unsafe fn bounded<'a>(at: *const u8, length: u64) -> Answer<&'a [u8]> {
    if length > LARGEST {
        return Err(Code::INVALID_IMAGE);
    }
    // SAFETY: the caller of `extent` vouches for the image's own length.
    Ok(unsafe { std::slice::from_raw_parts(at, length as usize) })
}

unsafe fn read<T: Copy>(at: *const u8, offset: u64) -> T {
    // SAFETY: the caller stays within what the image claims.
    unsafe { at.add(offset as usize).cast::<T>().read_unaligned() }
}

/// End of the last thing that an ELF file's headers name.
unsafe fn elf_length(at: *const u8) -> u64 {
    // SAFETY: an ELF header is 64 bytes, and the tables that it names belong to the image.
    unsafe {
        let (segments, sections) = (read::<u64>(at, 32), read::<u64>(at, 40));
        let [segment_size, segment_count, section_size, section_count] =
            [54, 56, 58, 60].map(|offset| u64::from(read::<u16>(at, offset)));
        let mut end = 64u64;
        if segment_count > 0 {
            end = end.max(segments.saturating_add(segment_size * segment_count));
        }
        if section_count == 0 || section_size < 64 || sections > LARGEST {
            return end;
        }
        end = end.max(sections.saturating_add(section_size * section_count));
        for index in 0..section_count {
            let header = sections + index * section_size;
            let (kind, offset, size): (u32, u64, u64) =
                (read(at, header + 4), read(at, header + 24), read(at, header + 32));
            const NULL: u32 = 0;
            const NOBITS: u32 = 8;
            if kind != NULL && kind != NOBITS && kind & 0x7000_00ff != 0x7000_0015 {
                end = end.max(offset.saturating_add(size));
            }
        }
        end
    }
}

/// Walks the sections of Tile IR bytecode: each is an id, a LEB128 length, and, where bit 7 of the id is set, an alignment
/// with padding; id 0 ends the image (read off images that cuda-tile wrote).
unsafe fn bytecode_length(at: *const u8) -> Answer<u64> {
    let mut offset = 12;
    loop {
        // SAFETY: as in `extent`; the walk is bounded below.
        let id: u8 = unsafe { read(at, offset) };
        offset += 1;
        if id & 0x7f == 0 {
            return Ok(offset);
        }
        // SAFETY: as above.
        let length = unsafe { leb128(at, &mut offset) }?;
        if id & 0x80 != 0 {
            // SAFETY: as above.
            let align = unsafe { leb128(at, &mut offset) }?;
            offset = offset.checked_next_multiple_of(align.clamp(1, 4096)).ok_or(Code::INVALID_IMAGE)?;
        }
        offset = offset.saturating_add(length);
        if offset > LARGEST {
            return Err(Code::INVALID_IMAGE);
        }
    }
}

unsafe fn leb128(at: *const u8, offset: &mut u64) -> Answer<u64> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        // SAFETY: the caller's walk is within the image.
        let byte: u8 = unsafe { read(at, *offset) };
        *offset += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Code::INVALID_IMAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn committed(name: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cubins").join(name)).unwrap()
    }

    #[test]
    fn every_form_states_its_own_length() {
        for name in [
            "tile/add.sm_120.cubin",
            "tile/add.sm_80.cubin",
            "ptx/add.sm_120.cubin",
            "other/add.fatbin",
            "other/add.tilebc",
        ] {
            let mut bytes = committed(name);
            let length = bytes.len();
            bytes.extend([0xee; 64]);
            // SAFETY: the image is whole.
            let found = unsafe { extent(bytes.as_ptr()) }.unwrap();
            assert_eq!(found.len(), length, "{name}");
        }
    }

    #[test]
    fn text_ends_with_nul_and_nothing_is_not_an_image() {
        // SAFETY: the text ends with NUL; null is refused.
        unsafe {
            assert_eq!(extent(c".version 8.0".as_ptr().cast()).unwrap(), b".version 8.0");
            assert_eq!(extent(std::ptr::null()).unwrap_err(), Code::INVALID_VALUE);
        }
    }
}
