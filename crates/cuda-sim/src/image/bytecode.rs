//! Tile IR bytecode. This driver has no compiler for it: it is accepted and its kernels compute nothing.

use super::{Computes, Form, Image, Kernel, MODULE_BYTES};
use crate::device::Device;
use crate::error::{Answer, Code};
use cubin_image::TileBytecode;
use std::ffi::CString;

/// Reads bytecode. Which of its strings names a kernel is not decoded: each word in it may be looked up.
pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
    TileBytecode::parse(bytes).map_err(|_| Code::INVALID_IMAGE)?;
    let kernels = words(bytes).filter_map(|word| CString::new(word).ok()).map(kernel).collect();
    Ok(Image { form: Form::TileBytecode, arch: device.arch, kernels, host: None, device_bytes: MODULE_BYTES })
}

/// Runs of characters that a symbol may have, three or more, each also without its first character (which may be a
/// length).
fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let symbol = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
    bytes.split(move |byte| !symbol(byte)).filter(|word| word.len() >= 3).flat_map(|word| [word, &word[1..]]).take(4096)
}

fn kernel(name: CString) -> Kernel {
    Kernel {
        name,
        parameters: Vec::new(),
        buffer_size: 0,
        required_block: None,
        max_block: None,
        registers: 32,
        shared_size: 0,
        computes: Computes::Touches,
    }
}
