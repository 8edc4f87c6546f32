//! `other-compiler`: the same Tile IR bytecode, compiled by every other version of tileiras on this machine.

use super::manifest::Compiled;
use super::regular_twin::code_equality;
use super::{CannotMake, Made, Prediction, Results, Subject, Variant, cannot};
use crate::cubin::compile::{COMPILE_LIMIT, Compile};
use crate::cubin::image::hex;
use crate::cubin::tools::Tool;
use cubin_image::{Cubin, TileBytecode};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

pub const VARIANT: Variant = Variant {
    name: "other-compiler",
    what: "whether the compiler's version takes part: the same bytecode, compiled by other versions of tileiras",
    make,
};

fn make(subject: &Subject) -> Results {
    if !subject.cubin.is_tile() {
        return cannot("the image is a regular one");
    }
    let Some(bytecode) = subject.bytecode.map(Path::to_owned).or_else(|| beside(subject.path)) else {
        return cannot(
            "no Tile IR bytecode of its source: name one with --bytecode, or put NAME.tilebc beside the image",
        );
    };
    let own = subject.cubin.compiler().version;
    let tools: Vec<Tool> =
        subject.tools.all("tileiras").into_iter().filter(|t| Some(t.release()) != own.as_deref()).collect();
    if tools.is_empty() {
        let own = own.unwrap_or("unknown".into());
        return cannot(format!(
            "no tileiras of another version than {own} was found (Python environment, PATH, CUDA folders)"
        ));
    }
    tools.iter().map(|tool| compile(subject, tool, &bytecode)).collect()
}

/// `add.tilebc` beside `add.sm_120.cubin`, or in the folder `other` beside the image's folder.
fn beside(image: &Path) -> Option<PathBuf> {
    let stem = image.file_name()?.to_str()?.split('.').next()?;
    let folder = image.parent()?;
    let places = [folder.join(format!("{stem}.tilebc")), folder.join("../other").join(format!("{stem}.tilebc"))];
    places.into_iter().find(|path| path.is_file())
}

fn compile(subject: &Subject, tool: &Tool, bytecode: &Path) -> Result<Made, CannotMake> {
    let source = crate::cubin::read_file(bytecode).map_err(|e| e.to_string())?;
    let version = TileBytecode::parse(&source).map_err(|e| format!("{}: {e}", bytecode.display()))?.version;
    let output = subject.scratch.join(format!("tileiras-{}.cubin", tool.version));
    let flags = vec![format!("--gpu-name=sm_{}", subject.cubin.arch), "--opt-level=3".into(), "--lineinfo".into()];
    let compile = Compile {
        tool,
        flags: flags.clone(),
        input: bytecode,
        output: &output,
        limit: COMPILE_LIMIT,
        keep_in: subject.keep_in,
    };
    let bytes = compile.run(subject.tools)?;
    let made = Cubin::parse(&bytes).map_err(|e| format!("what tileiras {} made: {e}", tool.version))?;
    let code = code_equality(subject.cubin, subject.bytes, &made, &bytes);
    Ok(Made {
        suffix: format!("{}-{}", VARIANT.name, tool.version),
        predicts: if made.is_tile() { Prediction::RunsAsTile } else { Prediction::RunsAsRegular },
        bytes,
        compiled: Some(Compiled {
            compiler: "tileiras".into(),
            version: tool.version.clone(),
            flags,
            source_sha256: Some(hex(&Sha256::digest(&source))),
            code,
        }),
        notes: vec![format!("compiled from Tile IR bytecode {}.{}", version.0, version.1)],
    })
}
