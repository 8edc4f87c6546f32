//! Several images as one: what a child is handed where its threads take different ones (`--spread`).
//!
//! `magic, u32 count`, then for each image `u32 length of its name, name, u64 size`, then the images one after the other.

/// First bytes of a bundle; no image starts with them.
const MAGIC: &[u8; 8] = b"\x7fBUNDLE\0";

/// Packs images with their names.
pub fn pack(images: &[(String, &[u8])]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(images.len() as u32).to_le_bytes());
    for (name, image) in images {
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&(image.len() as u64).to_le_bytes());
    }
    images.iter().for_each(|(_, image)| bytes.extend_from_slice(image));
    bytes
}

/// The images in a bundle with their names; none where the bytes are no whole bundle.
pub fn unpack(bytes: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut take = |size: usize| {
        let (head, tail) = rest.split_at_checked(size)?;
        rest = tail;
        Some(head)
    };
    let count = u32::from_le_bytes(take(4)?.try_into().ok()?);
    let mut heads = Vec::new();
    for _ in 0..count {
        let length = u32::from_le_bytes(take(4)?.try_into().ok()?) as usize;
        let name = String::from_utf8_lossy(take(length)?).into_owned();
        let size = u64::from_le_bytes(take(8)?.try_into().ok()?);
        heads.push((name, usize::try_from(size).ok()?));
    }
    heads.into_iter().map(|(name, size)| take(size).map(|image| (name, image))).collect()
}

/// The images of a bundle, or the bytes themselves where they are none.
pub fn members(bytes: &[u8]) -> Vec<&[u8]> {
    unpack(bytes).map_or_else(|| vec![bytes], |images| images.into_iter().map(|(_, image)| image).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_out_and_no_part_of_it_does() {
        let packed = pack(&[("a".into(), b"one"), ("b".into(), b""), ("c".into(), b"three")]);
        let names = |bytes| {
            unpack(bytes)
                .map(|all: Vec<(String, &[u8])>| all.into_iter().map(|(n, i)| (n, i.to_vec())).collect::<Vec<_>>())
        };
        let all = [("a".to_owned(), b"one".to_vec()), ("b".into(), vec![]), ("c".into(), b"three".to_vec())];
        assert_eq!(names(&packed).unwrap(), all);
        assert!((0..packed.len()).all(|length| names(&packed[..length]).is_none()));
        assert_eq!(members(b"\x7fELF"), [b"\x7fELF"]);
    }
}
