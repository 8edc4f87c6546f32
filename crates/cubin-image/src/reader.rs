//! Little-endian fields out of a slice, each read checked.

/// Reads a `u8` at `at`.
pub(crate) fn u8_at(data: &[u8], at: usize) -> Option<u8> {
    data.get(at).copied()
}

/// Reads a `u16` at `at`.
pub(crate) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

/// Reads a `u32` at `at`.
pub(crate) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

/// Reads a `u64` at `at`.
pub(crate) fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// The bytes `offset..offset + size`, if they lie inside `data`.
pub(crate) fn range(data: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = usize::try_from(offset.checked_add(size)?).ok()?;
    data.get(start..end)
}

/// The NUL-terminated bytes at `at`, without the NUL, looking at no more than `limit` bytes.
pub(crate) fn c_string(data: &[u8], at: usize, limit: usize) -> Option<&[u8]> {
    let rest = data.get(at..)?;
    let window = &rest[..rest.len().min(limit.saturating_add(1))];
    memchr::memchr(0, window).map(|end| &window[..end])
}
