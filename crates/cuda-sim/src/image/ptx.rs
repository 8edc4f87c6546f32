//! PTX text: its version and target are checked, its entries become kernels that compute nothing but what is known of them.

use super::{Form, Image, Kernel, MODULE_BYTES, Parameter, computes};
use crate::device::{Arch, Device};
use crate::driver::PTX_VERSION;
use crate::error::{Answer, Code};
use cubin_image::{Pointer, Ptx};
use std::ffi::CString;

/// Reads a text.
pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
    let ptx = Ptx::parse(bytes).map_err(|_| Code::INVALID_PTX)?;
    if ptx.version > PTX_VERSION {
        return Err(Code::UNSUPPORTED_PTX_VERSION);
    }
    let arch = Arch::from_number(ptx.arch().ok_or(Code::INVALID_PTX)?);
    if arch > device.arch {
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    let kernels = ptx.entries.iter().map(kernel).collect::<Answer<Vec<_>>>()?;
    Ok(Image { form: Form::Ptx, arch, kernels, host: None, device_bytes: MODULE_BYTES, undecoded: None })
}

fn kernel(entry: &cubin_image::PtxEntry) -> Answer<Kernel> {
    let parameters: Vec<Parameter> = entry
        .parameters
        .iter()
        .filter(|p| !p.hidden)
        .map(|p| Parameter { offset: p.offset as usize, size: p.size as usize, pointer: p.pointer == Pointer::Sure })
        .collect();
    Ok(Kernel {
        computes: computes(&entry.name, &parameters, false),
        name: CString::new(entry.name.as_str()).map_err(|_| Code::INVALID_PTX)?,
        buffer_size: entry.param_bytes() as usize,
        parameters,
        required_block: entry.required_block,
        max_block: entry.max_block,
        registers: 32,
        shared_size: 0,
    })
}
