//! Tile IR bytecode. This driver has no compiler for it: its kernels do what a cubin's of their name and parameters do.

use super::{Computes, Form, Image, Kernel, MODULE_BYTES, Parameter, computes};
use crate::device::Device;
use crate::error::{Answer, Code};
use cubin_image::{Pointer, TileBytecode, TileKernel};
use std::ffi::CString;

/// Reads bytecode. Where not all of its kernels can be told, one that computes nothing stands for every name.
pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
    let code = TileBytecode::parse(bytes).map_err(|_| Code::INVALID_IMAGE)?;
    let (kernels, undecoded) = match code.complete {
        true => (code.kernels.iter().map(kernel).collect::<Answer<Vec<_>>>()?, None),
        false => (vec![plain(c"undecoded".into(), Vec::new(), Computes::Touches)], Some(bytes.into())),
    };
    Ok(Image {
        form: Form::TileBytecode,
        arch: device.arch,
        kernels,
        host: None,
        device_bytes: MODULE_BYTES,
        undecoded,
    })
}

fn kernel(found: &TileKernel) -> Answer<Kernel> {
    let listed = found.parameters.iter().flatten();
    let parameters: Vec<Parameter> = listed
        .map(|p| Parameter { offset: p.offset as usize, size: p.size as usize, pointer: p.pointer == Pointer::Sure })
        .collect();
    let name = CString::new(found.name.as_str()).map_err(|_| Code::INVALID_IMAGE)?;
    let does = computes(&found.name, &parameters, true);
    Ok(plain(name, parameters, does))
}

fn plain(name: CString, parameters: Vec<Parameter>, computes: Computes) -> Kernel {
    Kernel {
        name,
        buffer_size: parameters.iter().map(|p| p.offset + p.size).max().unwrap_or(0),
        parameters,
        required_block: None,
        max_block: None,
        registers: 32,
        shared_size: 0,
        computes,
    }
}
