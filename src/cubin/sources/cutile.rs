//! A cuTile `.py` file: compiled by the cuda-tile of a Python environment, for the device.
//!
//! The file is run (in a child with a time limit): it is a program, and importing it is what defines its kernels.

use super::{SourceError, Workshop};
use crate::cubin::compile::{COMPILE_LIMIT, Compile, CompileError};
use crate::cubin::file::read_file;
use crate::cubin::image::{Image, ImageProblem};
use crate::cubin::tools::Tool;
use std::path::Path;

/// Loads the file and exports its kernels: `SCRIPT SOURCE -o OUT`, with the architecture as a flag before it.
const EXPORT: &str = include_str!("cutile_export.py");

/// Compiles it to a cubin.
pub fn compile(path: &Path, workshop: &Workshop) -> Result<Image, SourceError> {
    read_file(path).map_err(ImageProblem::from)?;
    let python = workshop.tools.python.clone().ok_or_else(|| {
        let text = "it takes Python with cuda-tile to compile, and no python3 was found; name one with --python";
        SourceError::Missing(format!("{}: {text}", path.display()))
    })?;
    let arch = (workshop.arch)().map_err(SourceError::Missing)?;
    let script = workshop.scratch.join("cutile_export.py");
    std::fs::write(&script, EXPORT).map_err(|source| CompileError::Io { path: script.clone(), source })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let output = workshop.scratch.join(format!("{stem}.cubin"));
    let tool = Tool { path: python, version: "with cuda-tile".into() };
    let flags = vec![script.display().to_string(), format!("--gpu=sm_{arch}")];
    let (limit, keep_in) = (COMPILE_LIMIT, workshop.keep_in);
    let compile = Compile { tool: &tool, flags, input: path, output: &output, limit, keep_in };
    match compile.run(workshop.tools) {
        Ok(bytes) => Ok(Image::from_bytes(path, bytes)?),
        Err(CompileError::Refused { said, .. }) if said.contains("No module named 'cuda") => {
            Err(SourceError::Missing(format!(
                "{}: the Python of this run has no cuda-tile (pip install 'cuda-tile[tileiras]'); name another with --python",
                path.display()
            )))
        }
        Err(error) => Err(error.into()),
    }
}
