//! Tile IR bytecode. This driver has no compiler for it: it is accepted, and its kernels compute nothing.

use super::{Computes, Form, Image, Kernel, MODULE_BYTES};
use crate::device::Device;
use crate::error::{Answer, Code};
use cubin_image::TileBytecode;

/// Reads bytecode. Which of its strings names a kernel is not decoded.
pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
    TileBytecode::parse(bytes).map_err(|_| Code::INVALID_IMAGE)?;
    let kernel = Kernel {
        name: c"undecoded".into(),
        parameters: Vec::new(),
        buffer_size: 0,
        required_block: None,
        max_block: None,
        registers: 32,
        shared_size: 0,
        computes: Computes::Touches,
    };
    Ok(Image {
        form: Form::TileBytecode,
        arch: device.arch,
        kernels: vec![kernel],
        host: None,
        device_bytes: MODULE_BYTES,
        undecoded: Some(bytes.into()),
    })
}
