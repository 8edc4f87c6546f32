//! A fat binary: loaded as it is; the driver takes the member that suits its device.
//!
//! What is said about kernels comes from the first member that can be read: all are made from one source.

use crate::cubin::image::Facts;
use cubin_image::{Cubin, Fatbin, ImageError, ImageKind, Ptx};

/// Most bytes that members are unpacked to.
const MOST: u64 = 64 << 20;

/// What it says.
pub fn facts(bytes: &[u8]) -> Result<Facts, ImageError> {
    let fatbin = Fatbin::parse(bytes)?;
    let (mut facts, mut left) = (Facts::for_driver(ImageKind::Fatbin), MOST);
    for entry in &fatbin.entries {
        let Some(rest) = left.checked_sub(entry.unpacked_size) else { break };
        left = rest;
        let Ok(image) = entry.unpack(bytes) else { continue };
        if let Ok(cubin) = Cubin::parse(&image) {
            facts.arch = facts.arch.max(Some(cubin.arch));
            facts.tile |= cubin.is_tile();
            facts.host_object |= cubin.is_tile();
            if facts.kernels.is_none() {
                facts.compiler = cubin.compiler();
                facts.kernels = Some(cubin.kernels);
            }
        } else if let Ok(ptx) = Ptx::parse(&image) {
            facts.arch = facts.arch.or(ptx.arch());
        }
    }
    Ok(facts)
}
