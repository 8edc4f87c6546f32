//! Tile IR bytecode: the driver's Tile IR compiler (a library beside it) makes an image of it.

use crate::cubin::image::Facts;
use cubin_image::{ImageError, ImageKind, Kernel, Parameter, Pointer, TileBytecode, TileKernel};

/// The address space that stands for "a pointer" in a kernel's parameters.
const GLOBAL: u8 = 4;

/// What it says. Kernels are left to the driver where not all could be read.
pub fn facts(bytes: &[u8]) -> Result<Facts, ImageError> {
    let code = TileBytecode::parse(bytes)?;
    let kernels = code.complete.then(|| code.kernels.iter().map(kernel).collect());
    Ok(Facts { tile: true, kernels, ..Facts::for_driver(ImageKind::TileBytecode) })
}

fn kernel(kernel: &TileKernel) -> Kernel {
    let parameters = kernel.parameters.iter().flatten().zip(0..).map(|(parameter, ordinal)| Parameter {
        ordinal,
        offset: u16::try_from(parameter.offset).unwrap_or(u16::MAX),
        size: parameter.size,
        space: if parameter.pointer == Pointer::Sure { GLOBAL } else { 0 },
        log2_alignment: 0,
    });
    Kernel {
        name: kernel.name.clone(),
        parameters: parameters.collect(),
        cbank_param_size: kernel.user_param_bytes(),
        ..Kernel::default()
    }
}
