//! A cubin.

use super::{Computes, Form, Image, Kernel, MODULE_BYTES, Parameter, computes};
use crate::device::Arch;
use crate::error::{Answer, Code};
use crate::host_object::Template;
use cubin_image::{Cubin, PLANTED_DEVICE_FAULT, Pointer};
use std::ffi::CString;

/// ELF type of a linked cubin.
const LINKED: u16 = 2;

/// Reads a cubin and prepares its host object.
pub fn read(bytes: &[u8]) -> Answer<Image> {
    let cubin = Cubin::parse(bytes).map_err(|_| Code::INVALID_IMAGE)?;
    if cubin.file_type != LINKED {
        return Err(Code::INVALID_IMAGE);
    }
    let host = cubin.host_object().map(Template::new).transpose()?;
    let kernels = cubin.kernels.iter().map(|found| kernel(found, host.is_some(), bytes)).collect::<Answer<Vec<_>>>()?;
    let code: u64 = cubin.kernels.iter().map(|kernel| kernel.text_size).fold(0, u64::saturating_add);
    Ok(Image {
        form: Form::Cubin,
        arch: Arch::from_number(cubin.arch),
        kernels,
        host,
        device_bytes: code.clamp(MODULE_BYTES, 1 << 40),
        undecoded: None,
    })
}

fn kernel(found: &cubin_image::Kernel, tile: bool, image: &[u8]) -> Answer<Kernel> {
    let parameters: Vec<Parameter> = found
        .parameters
        .iter()
        .map(|p| Parameter {
            offset: usize::from(p.offset),
            size: p.size as usize,
            pointer: p.pointer() == Pointer::Sure,
        })
        .collect();
    let user = found.user_param_bytes() as usize;
    Ok(Kernel {
        computes: match planted_fault(found, image) {
            true => Computes::IllegalAccess,
            false => computes(&found.name, &parameters, tile),
        },
        name: CString::new(found.name.as_str()).map_err(|_| Code::INVALID_IMAGE)?,
        buffer_size: (found.cbank_param_size as usize).max(user),
        parameters,
        required_block: found.required_block,
        max_block: found.max_block,
        registers: found.registers.unwrap_or(32),
        shared_size: found.shared_size,
    })
}

/// Whether its code starts with the mark of the variant `device-fault`.
fn planted_fault(kernel: &cubin_image::Kernel, image: &[u8]) -> bool {
    let code = usize::try_from(kernel.text_offset).ok().and_then(|start| image.get(start..));
    code.is_some_and(|code| code.starts_with(&PLANTED_DEVICE_FAULT))
}
