//! What the driver keeps of an image: its kernels and, of a Tile image, the host object ready to be mapped.

mod bytecode;
mod cubin;
mod extent;
mod fatbin;
mod intern;
mod ptx;

use crate::device::{Arch, Device};
use crate::error::{Answer, Code};
use crate::host_object::Template;
use cubin_image::ImageKind;
use std::ffi::CString;

pub use extent::extent;
pub use intern::intern;

/// What an image was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Machine code for one architecture.
    Cubin,
    /// PTX text: compiled, in this driver, to nothing.
    Ptx,
    /// Tile IR bytecode: as PTX.
    TileBytecode,
}

/// What a kernel computes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computes {
    /// `c = a + b` over the area that all three arrays have.
    Add,
    /// `c = a + b` over the first 128 x 128 elements of it.
    AddTile,
    /// Nothing: it touches what its pointers point to.
    Touches,
    /// Nothing: its code starts with the laboratory's mark of a planted illegal access (700).
    IllegalAccess,
}

/// A kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Offset in the parameter buffer, bytes.
    pub offset: usize,
    /// Size, bytes.
    pub size: usize,
    /// Whether the image says that it is a device pointer.
    pub pointer: bool,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: CString,
    /// Its parameters in order; none known for bytecode.
    pub parameters: Vec<Parameter>,
    /// Size of its parameter buffer with hidden parameters, bytes.
    pub buffer_size: usize,
    /// Block that it requires.
    pub required_block: Option<[u32; 3]>,
    /// Largest block that it allows.
    pub max_block: Option<[u32; 3]>,
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory, bytes.
    pub shared_size: u64,
    /// What it does.
    pub computes: Computes,
}

/// An image that was read.
pub struct Image {
    /// What it was made from.
    pub form: Form,
    /// Its architecture; of compiled forms, the one that it asks for.
    pub arch: Arch,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
    /// The host object of a Tile image.
    pub host: Option<Template>,
    /// Device memory that its code takes, bytes.
    pub device_bytes: u64,
    /// Bytes in which names of kernels stand undecoded.
    pub undecoded: Option<Box<[u8]>>,
}

/// Device memory that a module takes at least, bytes: a driver hands it out in large pieces.
const MODULE_BYTES: u64 = 64 * 1024;

impl Image {
    /// Reads an image of any form; of a fat binary, the entry that suits the device best.
    pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
        match ImageKind::detect(bytes) {
            ImageKind::Cubin => cubin::read(bytes),
            ImageKind::Fatbin => fatbin::read(bytes, device),
            ImageKind::Ptx => ptx::read(bytes, device),
            ImageKind::TileBytecode => bytecode::read(bytes, device),
            _ => Err(Code::INVALID_IMAGE),
        }
    }

    /// Reads a cubin.
    #[cfg(test)]
    pub fn read_cubin(bytes: &[u8]) -> Answer<Image> {
        cubin::read(bytes)
    }

    /// Whether the Tile IR compiler made it.
    pub fn is_tile(&self) -> bool {
        self.host.is_some() || self.form == Form::TileBytecode
    }

    /// Whether its code runs on a device: Tile images need their exact architecture.
    pub fn suits(&self, device: Arch) -> bool {
        match self.form {
            Form::Cubin if self.is_tile() => self.arch == device,
            Form::Cubin => device.runs(self.arch),
            Form::Ptx | Form::TileBytecode => true,
        }
    }

    /// The kernel of that name. Of compiled forms whose names were not decoded, any name that occurs in the image stands for
    /// the one kernel.
    pub fn find(&self, name: &std::ffi::CStr) -> Option<usize> {
        if let Some(undecoded) = &self.undecoded {
            let name = name.to_bytes();
            return (!name.is_empty() && undecoded.windows(name.len()).any(|window| window == name)).then_some(0);
        }
        self.kernels.iter().position(|kernel| kernel.name.as_c_str() == name)
    }
}

/// Knows the add kernel of the report: its name and its fifteen parameters (three times a pointer, two shapes and two
/// strides of 32 bits).
fn computes(name: &str, parameters: &[Parameter], tile: bool) -> Computes {
    let array = |at: usize| parameters[at].size == 8 && parameters[at + 1..at + 5].iter().all(|p| p.size == 4);
    let named = name == "repro_kernel" || name.contains("add");
    if named && parameters.len() == 15 && [0, 5, 10].into_iter().all(array) {
        return if tile { Computes::AddTile } else { Computes::Add };
    }
    Computes::Touches
}
