//! Images derived from one image, each differing in one thing: the twins that isolate a cause. One file a variant.
//!
//! Most are patched in place, so that all offsets stay and the manifest can name every byte that changed; those that need a
//! compiler are made where one is found and named with the reason where not.

mod callback_fault;
mod device_fault;
mod language_ptx;
mod manifest;
mod no_debug;
mod no_host_object;
mod other_compiler;
mod patch;
mod regular_twin;
mod renamed;
mod scrubbed;
mod unique;

pub use manifest::{Change, CodeEquality, Compiled, NotMade, VARIANTS_SCHEMA, VariantManifest, VariantRecord};
pub use regular_twin::regular_ptx;
pub use unique::UniqueByte;

use super::compile::CompilerFinding;
use super::tools::Tools;
use cubin_image::Cubin;
use std::path::Path;

/// What variants are made from.
pub struct Subject<'a> {
    /// The image's file.
    pub path: &'a Path,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// What they say.
    pub cubin: &'a Cubin,
    /// The compilers at hand.
    pub tools: &'a Tools,
    /// A folder for intermediate files.
    pub scratch: &'a Path,
    /// Where the input of a compiler that crashed is kept.
    pub keep_in: &'a Path,
    /// Tile IR bytecode of the same source, for `other-compiler`.
    pub bytecode: Option<&'a Path>,
}

/// A variant that was made.
pub struct Made {
    /// Put behind the image's name: the variant's name, with the compiler's version where there may be several.
    pub suffix: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it was compiled; none for a patched one.
    pub compiled: Option<Compiled>,
    /// What it does on the simulated driver.
    pub predicts: Prediction,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl Made {
    fn patched(name: &str, bytes: Vec<u8>, predicts: Prediction) -> Made {
        Made { suffix: name.into(), bytes, compiled: None, predicts, notes: Vec::new() }
    }
}

/// What a variant does when it is loaded and launched on the simulated driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prediction {
    /// Loads, runs, right results; the host callback is called.
    RunsAsTile,
    /// Loads, runs, right results; there is no host callback.
    RunsAsRegular,
    /// The host callback faults at the first launch: SIGSEGV in the host object.
    CallbackFaults,
    /// The kernel makes an illegal access: code 700 from the first synchronise on.
    DeviceFaults,
}

/// Why a variant was not made.
#[derive(Debug)]
pub enum CannotMake {
    /// It does not apply to this image, or this machine lacks what it takes.
    Because(String),
    /// A compiler crashed or hung over it.
    Finding(Box<CompilerFinding>),
}

impl From<String> for CannotMake {
    fn from(reason: String) -> CannotMake {
        CannotMake::Because(reason)
    }
}

impl From<super::compile::CompileError> for CannotMake {
    fn from(error: super::compile::CompileError) -> CannotMake {
        match error {
            super::compile::CompileError::Finding(finding) => CannotMake::Finding(finding),
            other => CannotMake::Because(other.to_string()),
        }
    }
}

/// What a variant's file makes: none, one, or (for several compilers) several.
pub type Results = Vec<Result<Made, CannotMake>>;

/// A kind of variant.
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// What it isolates.
    pub what: &'static str,
    /// Makes it.
    pub make: fn(&Subject) -> Results,
}

/// Every kind of variant, in the order of the manifest.
pub const ALL: [Variant; 10] = [
    regular_twin::VARIANT,
    no_host_object::VARIANT,
    no_debug::VARIANT,
    scrubbed::VARIANT,
    language_ptx::VARIANT,
    renamed::VARIANT,
    unique::VARIANT,
    other_compiler::VARIANT,
    callback_fault::VARIANT,
    device_fault::VARIANT,
];

/// What running an unchanged image predicts.
fn as_original(cubin: &Cubin) -> Prediction {
    if cubin.is_tile() { Prediction::RunsAsTile } else { Prediction::RunsAsRegular }
}

/// One result that says why not.
fn cannot(reason: impl Into<String>) -> Results {
    vec![Err(CannotMake::Because(reason.into()))]
}

/// Makes every variant of an image, or those of the names given.
pub fn make_all(subject: &Subject, only: &[String]) -> Vec<(&'static Variant, Results)> {
    let wanted = |variant: &&'static Variant| only.is_empty() || only.iter().any(|name| name == variant.name);
    static KNOWN: [Variant; 10] = ALL;
    KNOWN.iter().filter(wanted).map(|variant| (variant, (variant.make)(subject))).collect()
}
