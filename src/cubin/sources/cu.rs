//! A `.cu` file, CUDA C++ or CUDA Tile C++: compiled by the nvcc of the machine or of a Python environment, for the device.

use super::{SourceError, Workshop};
use crate::cubin::compile::{COMPILE_LIMIT, Compile};
use crate::cubin::file::read_file;
use crate::cubin::image::{Image, ImageProblem};
use std::path::Path;

/// What only a CUDA Tile program says.
const TILE_MARKS: [&str; 3] = ["cuda_tile.h", "__tile_global__", "__tile__"];

/// Compiles it to a cubin.
pub fn compile(path: &Path, workshop: &Workshop) -> Result<Image, SourceError> {
    let source = read_file(path).map_err(ImageProblem::from)?;
    let text = String::from_utf8_lossy(&source);
    let nvcc = workshop.tools.best("nvcc", None).ok_or_else(|| {
        let where_to = "looked in the Python environment, PATH and CUDA folders; name an environment with --python";
        SourceError::Missing(format!("{}: it takes nvcc to compile, and none was found ({where_to})", path.display()))
    })?;
    let arch = (workshop.arch)().map_err(SourceError::Missing)?;
    let mut flags = vec![format!("-arch=sm_{arch}")];
    if TILE_MARKS.iter().any(|mark| text.contains(mark)) {
        flags.extend(["--enable-tile", "-std=c++20", "--tilecubin"].map(String::from));
    } else {
        flags.push("-cubin".into());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let output = workshop.scratch.join(format!("{stem}.cubin"));
    let (limit, keep_in) = (COMPILE_LIMIT, workshop.keep_in);
    let compile = Compile { tool: &nvcc, flags, input: path, output: &output, limit, keep_in };
    let bytes = compile.run(workshop.tools)?;
    Ok(Image::from_bytes(path, bytes)?)
}
