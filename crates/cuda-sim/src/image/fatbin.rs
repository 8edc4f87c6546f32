//! A fat binary: several images in one, of which the device takes the best.

use super::{Image, bytecode, cubin, ptx};
use crate::device::{Arch, Device};
use crate::error::{Answer, Code};
use cubin_image::{Compression, Fatbin, FatbinEntry, FatbinKind};

/// Reads the entry that suits the device best: a cubin for it or for the nearest lower minor number, else PTX or bytecode
/// for an architecture that is not above it. Packed entries are passed over.
pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
    let fatbin = Fatbin::parse(bytes).map_err(|_| Code::INVALID_IMAGE)?;
    let best = |kind: FatbinKind, fits: &dyn Fn(Arch) -> bool| -> Option<&FatbinEntry> {
        let plain = |entry: &&FatbinEntry| entry.compression == Compression::None && entry.kind == kind;
        let candidates = fatbin.entries.iter().filter(plain);
        candidates.filter(|entry| fits(Arch::from_number(entry.arch))).max_by_key(|entry| entry.arch)
    };
    if let Some(entry) = best(FatbinKind::Cubin, &|arch| device.arch.runs(arch)) {
        return cubin::read(entry.data(bytes));
    }
    if let Some(entry) = best(FatbinKind::TileBytecode, &|arch| arch == device.arch) {
        return bytecode::read(entry.data(bytes), device);
    }
    if let Some(entry) = best(FatbinKind::Ptx, &|arch| arch <= device.arch) {
        return ptx::read(entry.data(bytes), device);
    }
    Err(Code::NO_BINARY_FOR_GPU)
}
