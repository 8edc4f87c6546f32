//! The image as the worker needs it: its bytes for the driver, and what they say about kernels and their parameters.
//!
//! Read before any driver call, so that a plan that does not fit the image is refused by us, whatever the driver at hand
//! would let pass.

use crate::plan::Dim3;
use cubin_image::{Cubin, Fatbin, ImageKind, Pointer, Ptx, TileBytecode};
use std::ffi::c_void;
use std::path::{Path, PathBuf};

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Offset in the argument buffer, bytes.
    pub offset: usize,
    /// Size, bytes.
    pub size: usize,
    /// A device pointer, surely or (where the image names no address spaces) by its size.
    pub pointer: bool,
}

/// What the image says about one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Its symbol.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Least size of its argument buffer, hidden parameters included, bytes.
    pub buffer_bytes: usize,
    /// The block size that it requires.
    pub block: Option<Dim3>,
}

/// An image.
pub(super) struct Image {
    /// Its bytes and one zero byte behind them, which the driver wants behind PTX text.
    bytes: Vec<u8>,
    /// Where it came from: for messages only.
    pub path: PathBuf,
    /// The architecture that it was compiled for: 120 for sm_120.
    pub arch: Option<u32>,
    /// It is a Tile IR image: a cubin with a host object, or bytecode.
    pub tile: bool,
    /// Its kernels; none where its form does not tell them.
    pub kernels: Option<Vec<Kernel>>,
}

impl Image {
    /// Reads what stands in `bytes`.
    ///
    /// # Errors
    /// One line, where they are no image that a driver could load.
    pub fn read(mut bytes: Vec<u8>, path: &Path) -> Result<Image, String> {
        let refuse = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let kind = ImageKind::detect(&bytes);
        let (arch, tile, kernels) = match kind {
            ImageKind::Cubin => from_cubin(&Cubin::parse(&bytes).map_err(|error| refuse(&error))?),
            ImageKind::Ptx => from_ptx(&Ptx::parse(&bytes).map_err(|error| refuse(&error))?),
            ImageKind::Fatbin => from_fatbin(&Fatbin::parse(&bytes).map_err(|error| refuse(&error))?, &bytes),
            ImageKind::TileBytecode => {
                (None, true, from_bytecode(&TileBytecode::parse(&bytes).map_err(|e| refuse(&e))?))
            }
            other => return Err(refuse(&format_args!("{}, not an image that a driver loads", other.describe()))),
        };
        bytes.push(0);
        Ok(Image { bytes, path: path.into(), arch, tile, kernels })
    }

    /// The bytes, and the zero byte behind them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the driver is handed.
    pub fn as_ptr(&self) -> *const c_void {
        self.bytes.as_ptr().cast()
    }

    /// The kernel of that name, where the image tells its kernels.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.as_ref()?.iter().find(|kernel| kernel.name == name)
    }
}

type Facts = (Option<u32>, bool, Option<Vec<Kernel>>);

fn from_cubin(cubin: &Cubin) -> Facts {
    let kernels = cubin.kernels.iter().map(|kernel| Kernel {
        name: kernel.name.clone(),
        parameters: parameters(
            kernel.parameters.iter().map(|p| (usize::from(p.offset), p.size as usize, p.pointer())).collect(),
        ),
        buffer_bytes: (kernel.cbank_param_size.max(kernel.user_param_bytes())) as usize,
        block: kernel.required_block.map(|[x, y, z]| Dim3(x, y, z)),
    });
    (Some(cubin.arch), cubin.is_tile(), Some(kernels.collect()))
}

fn from_ptx(ptx: &Ptx) -> Facts {
    let kernels = ptx.entries.iter().map(|entry| Kernel {
        name: entry.name.clone(),
        parameters: parameters(
            entry.parameters.iter().map(|p| (p.offset as usize, p.size as usize, p.pointer)).collect(),
        ),
        buffer_bytes: entry.param_bytes() as usize,
        block: entry.required_block.map(|[x, y, z]| Dim3(x, y, z)),
    });
    (ptx.arch(), false, Some(kernels.collect()))
}

/// None where not every kernel could be read, or a kernel's parameters: then the plan's word is taken.
fn from_bytecode(code: &TileBytecode) -> Option<Vec<Kernel>> {
    let kernel = |kernel: &cubin_image::TileKernel| {
        let listed = kernel.parameters.as_ref()?;
        Some(Kernel {
            name: kernel.name.clone(),
            parameters: parameters(listed.iter().map(|p| (p.offset as usize, p.size as usize, p.pointer)).collect()),
            buffer_bytes: kernel.user_param_bytes() as usize,
            block: None,
        })
    };
    code.complete.then(|| code.kernels.iter().map(kernel).collect::<Option<_>>()).flatten()
}

/// A fat binary is as good as its first member that can be read.
fn from_fatbin(fatbin: &Fatbin, file: &[u8]) -> Facts {
    fatbin
        .entries
        .iter()
        .find_map(|entry| Cubin::parse(&entry.unpack(file).ok()?).ok())
        .map_or((None, false, None), |cubin| (None, cubin.is_tile(), from_cubin(&cubin).2))
}

/// Where an image names address spaces at all, eight bytes without one are a number; where it names none, they are taken
/// for a pointer.
fn parameters(listed: Vec<(usize, usize, Pointer)>) -> Vec<Parameter> {
    let named = listed.iter().any(|(_, _, pointer)| *pointer == Pointer::Sure);
    listed
        .into_iter()
        .map(|(offset, size, pointer)| Parameter {
            offset,
            size,
            pointer: pointer == Pointer::Sure || (!named && pointer == Pointer::Possible),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(name: &str) -> Result<Image, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins").join(name);
        Image::read(std::fs::read(&path).unwrap(), &path)
    }

    #[test]
    fn tile_and_regular_twins_have_the_reports_parameters() {
        for (name, tile) in
            [("tile/add.sm_120.cubin", true), ("ptx/add.sm_120.cubin", false), ("ptx/add.sm_80.cubin", false)]
        {
            let image = committed(name).unwrap();
            assert_eq!(image.tile, tile, "{name}");
            let kernel = image.kernel("repro_kernel").unwrap();
            assert_eq!(kernel.parameters.len(), 15, "{name}");
            let pointers: Vec<bool> = kernel.parameters.iter().map(|p| p.pointer).collect();
            assert_eq!(pointers, [true, false, false, false, false].repeat(3), "{name}");
            assert!(kernel.buffer_bytes >= 0x48, "{name}");
        }
    }

    #[test]
    fn what_no_driver_loads_is_refused_in_one_line() {
        let path = Path::new("some.cubin");
        for bytes in [&b""[..], b"\0\0\0\0nothing", b"\x7fELF\x02\x01\x01", b"\x1f\x8b\x08"] {
            let error = Image::read(bytes.to_vec(), path).err().unwrap();
            assert!(error.starts_with("some.cubin: ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_drivers_copy_ends_in_a_zero_byte() {
        let image = committed("other/add.ptx").unwrap();
        assert_eq!(image.bytes.last(), Some(&0));
        assert!(image.kernel("repro_kernel").is_some());
    }
}
