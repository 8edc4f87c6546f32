//! A fat binary: several images in one, packed or not, of which the device takes the best.

use super::{Image, bytecode, cubin, ptx};
use crate::device::{Arch, Device};
use crate::error::{Answer, Code};
use cubin_image::{Fatbin, FatbinEntry, FatbinKind};
use std::borrow::Cow;

/// Reads the entry that suits the device best: a cubin for it or for the nearest lower minor number, else bytecode for its
/// architecture, else PTX for one that is not above it.
pub fn read(bytes: &[u8], device: &Device) -> Answer<Image> {
    let fatbin = Fatbin::parse(bytes).map_err(|_| Code::INVALID_IMAGE)?;
    let best = |kind: FatbinKind, fits: &dyn Fn(Arch) -> bool| -> Option<&FatbinEntry> {
        let candidates = fatbin.entries.iter().filter(|entry| entry.kind == kind);
        candidates.filter(|entry| fits(Arch::from_number(entry.arch))).max_by_key(|entry| entry.arch)
    };
    let unpacked = |entry: &FatbinEntry| -> Answer<Cow<[u8]>> { entry.unpack(bytes).map_err(|_| Code::INVALID_IMAGE) };
    if let Some(entry) = best(FatbinKind::Cubin, &|arch| device.arch.runs(arch)) {
        return cubin::read(&unpacked(entry)?);
    }
    if let Some(entry) = best(FatbinKind::TileBytecode, &|arch| arch == device.arch) {
        return bytecode::read(&unpacked(entry)?, device);
    }
    if let Some(entry) = best(FatbinKind::Ptx, &|arch| arch <= device.arch) {
        let text = unpacked(entry)?;
        return ptx::read(text.strip_suffix(b"\0").unwrap_or(&text), device);
    }
    Err(Code::NO_BINARY_FOR_GPU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::PROFILES;
    use crate::settings::Setting;
    use std::path::Path;

    fn read_for(name: &str, arch: &str) -> Answer<Image> {
        let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap();
        read(&bytes, &Device::new(&PROFILES[0], Some(&Setting::parse(arch))).unwrap())
    }

    #[test]
    fn the_device_takes_machine_code_where_it_can_and_text_elsewhere() {
        let of = |arch| read_for("cubins/other/add.fatbin", arch).map(|image| (image.form, image.arch));
        let (exact, higher) = (of("sm_90").unwrap(), of("sm_120").unwrap());
        assert_eq!(exact, (super::super::Form::Cubin, Arch::from_number(90)));
        assert!(higher.1 <= Arch::from_number(120), "{higher:?}");
    }

    #[test]
    fn packed_entries_are_unpacked() {
        for name in ["size", "speed"] {
            let image = read_for(&format!("fuzz/corpus/fatbin/{name}.fatbin"), "sm_90");
            assert!(image.is_ok_and(|image| !image.kernels.is_empty()), "{name}");
        }
    }
}
