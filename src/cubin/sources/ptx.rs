//! PTX text: the driver compiles it for its device.

use crate::cubin::image::Facts;
use cubin_image::{ImageError, ImageKind, Kernel, Parameter, Pointer, Ptx, PtxEntry};

/// The address space that stands for "a pointer" in a kernel's parameters.
const GLOBAL: u8 = 4;

/// What it says.
pub fn facts(bytes: &[u8]) -> Result<Facts, ImageError> {
    let ptx = Ptx::parse(bytes)?;
    let kernels = ptx.entries.iter().map(kernel).collect();
    Ok(Facts { arch: ptx.arch(), kernels: Some(kernels), ..Facts::for_driver(ImageKind::Ptx) })
}

fn kernel(entry: &PtxEntry) -> Kernel {
    let parameters = entry.parameters.iter().filter(|p| !p.hidden).zip(0..).map(|(parameter, ordinal)| Parameter {
        ordinal,
        offset: u16::try_from(parameter.offset).unwrap_or(u16::MAX),
        size: parameter.size,
        space: if parameter.pointer == Pointer::Sure { GLOBAL } else { 0 },
        log2_alignment: 0,
    });
    Kernel {
        name: entry.name.clone(),
        parameters: parameters.collect(),
        cbank_param_size: entry.param_bytes(),
        required_block: entry.required_block,
        max_block: entry.max_block,
        ..Kernel::default()
    }
}
