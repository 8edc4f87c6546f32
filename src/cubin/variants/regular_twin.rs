//! `regular-twin`: the PTX that a Tile image brings along, compiled by ptxas alone. The same kernels and parameters, no
//! host object; for simple kernels the very same machine code.

use super::manifest::{CodeEquality, Compiled};
use super::{CannotMake, Made, Prediction, Subject, Variant};
use crate::cubin::compile::{COMPILE_LIMIT, Compile};
use crate::cubin::image::hex;
use crate::cubin::tools::Tool;
use cubin_image::{Cubin, Kernel, Ptx};
use sha2::{Digest, Sha256};
use std::path::Path;

pub const VARIANT: Variant = Variant {
    name: "regular-twin",
    what: "whether it takes a Tile image at all: the embedded PTX, compiled to a regular image with the same parameters",
    make: |subject| vec![make(subject)],
};

/// Where tileiras 13.4 and later append what ptxas refuses.
const APPENDED: &str = ".nv_intermediate_source_section";
/// The symbol that makes device memory of the launch's metadata.
const METADATA: &str = "___NV_TILE_LAUNCH_META_DATA___";

fn make(subject: &Subject) -> Result<Made, CannotMake> {
    let cubin = subject.cubin;
    if !cubin.is_tile() {
        return Err("the image is a regular one".to_owned().into());
    }
    refuse_hidden(cubin)?;
    let embedded = cubin.embedded_ptx(subject.bytes);
    let embedded = embedded.ok_or("the image carries no PTX: it was compiled without line information".to_owned())?;
    let text = regular_ptx(embedded);
    let target = Ptx::parse(text.as_bytes()).map_err(|e| format!("its PTX: {e}"))?.target;
    let wanted = cubin.compiler().back_end;
    let tool = subject.tools.best("ptxas", wanted.as_deref()).ok_or_else(|| no_compiler(subject, &text))?;
    let flags = vec![format!("-arch={target}"), "-O3".to_owned()];
    let bytes = compile(subject, &tool, &flags, &text)?;
    let twin = Cubin::parse(&bytes).map_err(|e| format!("what ptxas made: {e}"))?;
    check_parameters(cubin, &twin)?;
    let equality = code_equality(cubin, subject.bytes, &twin, &bytes);
    let mut notes = Vec::new();
    if wanted.as_ref() != Some(&tool.version) {
        let wanted = wanted.unwrap_or("unknown".into());
        notes.push(format!(
            "the image's back end is {wanted}, this is ptxas {}: code may differ for that alone",
            tool.version
        ));
    }
    let ptx_sha256 = hex(&Sha256::digest(&text));
    let compiled = Compiled {
        compiler: "ptxas".into(),
        version: tool.version,
        flags,
        source_sha256: Some(ptx_sha256),
        code: equality,
    };
    Ok(Made {
        suffix: VARIANT.name.into(),
        bytes,
        compiled: Some(compiled),
        predicts: Prediction::RunsAsRegular,
        notes,
    })
}

/// Descriptors are written by the host object alone: without it a kernel that reads them reads nothing sensible.
fn refuse_hidden(cubin: &Cubin) -> Result<(), String> {
    let hidden = cubin.kernels.iter().filter(|k| k.hidden_bytes() > 0);
    let needy: Vec<String> = hidden.map(|k| format!("{} ({} bytes)", k.name, k.hidden_bytes())).collect();
    match needy.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "descriptors behind the parameters would be missing, only a host object writes them: {}",
            needy.join(", ")
        )),
    }
}

/// Without ptxas, what the MANIFEST of committed images says about a twin of this very PTX is still known.
fn no_compiler(subject: &Subject, text: &str) -> String {
    let sha256 = hex(&Sha256::digest(text));
    let known = recorded(subject.path, &hex(&Sha256::digest(subject.bytes)), &sha256);
    let known = known.unwrap_or_else(|| format!("its PTX has sha256 {sha256}"));
    format!("no ptxas was found (looked in the Python environment, PATH and CUDA folders); {known}")
}

/// What a MANIFEST above the image says of its twin, if it speaks of this image and of this PTX.
fn recorded(image: &Path, image_sha256: &str, ptx_sha256: &str) -> Option<String> {
    let folders = image.parent()?.ancestors().take(3);
    let text = folders.map(|f| f.join("MANIFEST")).find_map(|path| crate::cubin::read_file(&path).ok())?;
    let manifest: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let twin = &manifest["images"].as_array()?.iter().find(|i| i["sha256"] == image_sha256)?["twin"];
    if twin["ptx_sha256"] != ptx_sha256 {
        return None;
    }
    let version = twin["compiler_version"].as_str()?;
    let kernel = |kernel: &serde_json::Value| {
        let word = if kernel["code_equal"] == true { "equal" } else { "other" };
        Some(format!("{} {word}", kernel["name"].as_str()?))
    };
    let kernels: Vec<String> = twin["kernels"].as_array()?.iter().filter_map(kernel).collect();
    Some(format!(
        "the MANIFEST records for this very PTX, compiled by ptxas {version}, machine code: {}",
        kernels.join(", ")
    ))
}

/// The PTX without what marks it as Tile IR's.
pub fn regular_ptx(embedded: &[u8]) -> String {
    let text = String::from_utf8_lossy(embedded).replace('\0', "\n");
    let text = text.split(APPENDED).next().unwrap_or_default();
    let is_tiles = |line: &str| line.starts_with(".language ") || (line.contains(METADATA) && line.contains(';'));
    text.split_inclusive('\n').filter(|line| !is_tiles(line)).collect()
}

fn compile(subject: &Subject, tool: &Tool, flags: &[String], text: &str) -> Result<Vec<u8>, CannotMake> {
    let (input, output) = (subject.scratch.join("twin.ptx"), subject.scratch.join("twin.cubin"));
    std::fs::write(&input, text).map_err(|e| format!("{}: {e}", input.display()))?;
    let compile = Compile {
        tool,
        flags: flags.to_vec(),
        input: &input,
        output: &output,
        limit: COMPILE_LIMIT,
        keep_in: subject.keep_in,
    };
    Ok(compile.run(subject.tools)?)
}

fn check_parameters(own: &Cubin, twin: &Cubin) -> Result<(), String> {
    let layout = |k: &Kernel| k.parameters.iter().map(|p| (p.offset, p.size)).collect::<Vec<_>>();
    for kernel in &own.kernels {
        let other = twin.kernel(&kernel.name).ok_or_else(|| format!("what ptxas made lacks kernel {}", kernel.name))?;
        if layout(kernel) != layout(other) {
            return Err(format!("what ptxas made has other parameters in {}", kernel.name));
        }
    }
    Ok(())
}

/// Kernel by kernel: is the machine code the image's own?
pub fn code_equality(own: &Cubin, own_bytes: &[u8], other: &Cubin, other_bytes: &[u8]) -> Vec<CodeEquality> {
    fn code<'a>(kernel: &Kernel, bytes: &'a [u8]) -> &'a [u8] {
        let start = kernel.text_offset as usize;
        start.checked_add(kernel.text_size as usize).and_then(|end| bytes.get(start..end)).unwrap_or(&[])
    }
    own.kernels
        .iter()
        .map(|kernel| {
            let theirs = other.kernel(&kernel.name).map(|k| code(k, other_bytes)).unwrap_or(&[]);
            CodeEquality {
                kernel: kernel.name.clone(),
                code_equal: code(kernel, own_bytes) == theirs,
                code_sha256: hex(&Sha256::digest(theirs)),
            }
        })
        .collect()
}
