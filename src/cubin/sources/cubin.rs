//! A cubin: loaded as it is.

use crate::cubin::image::{Facts, ImageProblem};
use cubin_image::{Cubin, ImageKind};
use std::path::Path;

/// What it says; refused where its host code is for another machine.
pub fn facts(path: &Path, bytes: &[u8]) -> Result<Facts, ImageProblem> {
    let cubin = Cubin::parse(bytes).map_err(|source| ImageProblem::Bytes { path: path.to_owned(), source })?;
    if let Some(host) = cubin.host_object().filter(|host| !host.machine.is_native()) {
        let (offset, machine) = (host.offset, host.machine.word());
        return Err(ImageProblem::ForeignHost { path: path.to_owned(), offset, machine });
    }
    Ok(Facts {
        kind: ImageKind::Cubin,
        arch: Some(cubin.arch),
        tile: cubin.is_tile(),
        host_object: cubin.is_tile(),
        compiler: cubin.compiler(),
        kernels: Some(cubin.kernels),
    })
}
