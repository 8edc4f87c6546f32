//! What is written beside variants: what each one is, and for patched ones every byte that changed.

use super::{CannotMake, Made, Prediction, Subject, Variant};
use crate::cubin::image::hex;
use cubin_image::Cubin;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Name of the manifest's shape.
pub const VARIANTS_SCHEMA: &str = "cubin-stress/variants/1";

/// Equal bytes between two changes that are kept in one record, at most.
const JOIN: usize = 4;

/// The manifest, `variants.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VariantManifest {
    /// [`VARIANTS_SCHEMA`].
    pub schema: String,
    /// The image's file name.
    pub image: String,
    /// SHA-256 of the image, hex.
    pub sha256: String,
    /// Variants that were made.
    pub variants: Vec<VariantRecord>,
    /// Variants that were not.
    pub not_made: Vec<NotMade>,
}

/// One variant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VariantRecord {
    /// Its kind.
    pub name: String,
    /// Its file, beside the manifest.
    pub file: String,
    /// Size, bytes.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
    /// What it isolates.
    pub what: String,
    /// How it was compiled; none where it was patched.
    pub compiled: Option<Compiled>,
    /// Every byte that differs from the image; empty where it was compiled anew.
    pub changes: Vec<Change>,
    /// What it does on the simulated driver.
    pub predicts: Prediction,
    /// Its kernels.
    pub kernels: Vec<String>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

/// Bytes that differ from the image's.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// File offset of the first.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// What they belong to.
    pub place: String,
    /// The image's bytes, hex.
    pub before: String,
    /// The variant's bytes, hex.
    pub after: String,
}

/// How a variant was compiled.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Compiled {
    /// The compiler.
    pub compiler: String,
    /// Its exact version.
    pub version: String,
    /// Its flags.
    pub flags: Vec<String>,
    /// SHA-256 of what it compiled, hex.
    pub source_sha256: Option<String>,
    /// Kernel by kernel, whether the machine code is the image's own.
    pub code: Vec<CodeEquality>,
}

/// Whether a kernel's machine code is the image's own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CodeEquality {
    /// The kernel.
    pub kernel: String,
    /// Byte for byte equal.
    pub code_equal: bool,
    /// SHA-256 of the variant's code, hex.
    pub code_sha256: String,
}

/// A variant that was not made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotMade {
    /// Its kind.
    pub name: String,
    /// Why not.
    pub reason: String,
}

impl VariantManifest {
    /// One without variants yet.
    pub fn of(subject: &Subject) -> VariantManifest {
        VariantManifest {
            schema: VARIANTS_SCHEMA.into(),
            image: subject.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            sha256: hex(&Sha256::digest(subject.bytes)),
            variants: Vec::new(),
            not_made: Vec::new(),
        }
    }
}

impl VariantRecord {
    /// What there is to say about a variant.
    pub fn new(subject: &Subject, variant: &Variant, made: &Made) -> VariantRecord {
        let stem = subject.path.file_stem().map_or_else(|| "image".into(), |s| s.to_string_lossy().into_owned());
        let kernels = Cubin::parse(&made.bytes).map(|c| c.kernels.into_iter().map(|k| k.name).collect());
        VariantRecord {
            name: variant.name.into(),
            file: format!("{stem}.{}.cubin", made.suffix),
            bytes: made.bytes.len() as u64,
            sha256: hex(&Sha256::digest(&made.bytes)),
            what: variant.what.into(),
            changes: match made.compiled {
                Some(_) => Vec::new(),
                None => changes(subject.bytes, &made.bytes, subject.cubin),
            },
            compiled: made.compiled.as_ref().map(Compiled::copy),
            predicts: made.predicts,
            kernels: kernels.unwrap_or_default(),
            notes: made.notes.clone(),
        }
    }
}

impl Compiled {
    fn copy(&self) -> Compiled {
        Compiled {
            compiler: self.compiler.clone(),
            version: self.version.clone(),
            flags: self.flags.clone(),
            source_sha256: self.source_sha256.clone(),
            code: self.code.clone(),
        }
    }
}

impl NotMade {
    /// Why a variant was not made.
    pub fn new(variant: &Variant, why: &CannotMake) -> NotMade {
        let reason = match why {
            CannotMake::Because(reason) => reason.clone(),
            CannotMake::Finding(finding) => crate::cubin::compile::CompileError::Finding(finding.clone()).to_string(),
        };
        NotMade { name: variant.name.into(), reason }
    }
}

/// Runs of differing bytes, with the part of the image that each lies in.
fn changes(before: &[u8], after: &[u8], cubin: &Cubin) -> Vec<Change> {
    let differs: Vec<usize> = (0..before.len().min(after.len())).filter(|&i| before[i] != after[i]).collect();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in differs {
        match runs.last_mut() {
            Some((_, end)) if at - *end <= JOIN => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    let change = |(start, end): (usize, usize)| Change {
        offset: start as u64,
        bytes: (end - start) as u64,
        place: place(start as u64, cubin),
        before: hex(&before[start..end]),
        after: hex(&after[start..end]),
    };
    runs.into_iter().map(change).collect()
}

fn place(offset: u64, cubin: &Cubin) -> String {
    if offset < 64 {
        return "ELF header".into();
    }
    if let Some(section) = cubin.sections.iter().find(|s| s.header_offset <= offset && offset < s.header_offset + 64) {
        return format!("section header of {}", section.name);
    }
    let holds = |s: &&cubin_image::Section| s.in_file() && s.offset <= offset && offset < s.offset + s.size;
    cubin.sections.iter().find(holds).map_or_else(|| "between sections".into(), |s| s.name.clone())
}
