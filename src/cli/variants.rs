//! `stress variants IMAGE... --out DIR`: images that differ from one in one thing each, with a manifest.

use crate::cubin::tools::Tools;
use crate::cubin::variants::{ALL, CannotMake, NotMade, Subject, VariantManifest, VariantRecord, make_all};
use crate::cubin::{ImageProblem, read_cubin};
use crate::exit::Exit;
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// How the manifest is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VariantsFormat {
    /// A line a variant.
    #[default]
    Text,
    /// The manifests as one JSON array.
    Json,
}

/// What can be said to `stress variants`.
#[derive(Args, Debug)]
pub struct VariantsArgs {
    /// Cubins
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    /// Folder for the variants; with several images, each gets a folder of its own in it
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Make only this variant (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ALL.map(|v| v.name))]
    only: Vec<String>,
    /// Python interpreter in whose environment compilers are looked for
    #[arg(long, value_name = "PATH", env = "STRESS_PYTHON")]
    python: Option<PathBuf>,
    /// Tile IR bytecode of the image's source, for other-compiler
    #[arg(long, value_name = "FILE")]
    bytecode: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    format: VariantsFormat,
}

/// Runs the command: 0; 1 where a compiler crashed or hung; 2 where a file is no cubin or nothing can be written.
pub fn main(args: &VariantsArgs) -> Exit {
    match run(args) {
        Ok(exit) => exit,
        Err(text) => {
            crate::say::log(format_args!("stress: {text}"));
            Exit::BadInput
        }
    }
}

fn run(args: &VariantsArgs) -> Result<Exit, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let tools = Tools::new(own, args.python.as_deref());
    let (mut exit, mut manifests) = (Exit::Clean, Vec::new());
    for (index, image) in args.images.iter().enumerate() {
        let out = folder(args, index);
        let (manifest, crashed) = one(args, image, &out, &tools)?;
        if crashed {
            exit = exit.or(Exit::FaultFound);
        }
        manifests.push((out, manifest));
    }
    let text = match args.format {
        VariantsFormat::Json => {
            let documents: Vec<&VariantManifest> = manifests.iter().map(|(_, manifest)| manifest).collect();
            serde_json::to_string_pretty(&documents).map_err(|e| e.to_string())? + "\n"
        }
        VariantsFormat::Text => manifests.iter().map(|(out, manifest)| text(out, manifest)).collect(),
    };
    // Nobody reads what cannot be printed: a closed pipe is no error of ours.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    Ok(exit)
}

fn folder(args: &VariantsArgs, index: usize) -> PathBuf {
    let image = &args.images[index];
    match args.images.len() {
        1 => args.out.clone(),
        _ => args.out.join(format!("{index}-{}", image.file_stem().unwrap_or_default().to_string_lossy())),
    }
}

fn one(args: &VariantsArgs, image: &Path, out: &Path, tools: &Tools) -> Result<(VariantManifest, bool), String> {
    let (bytes, cubin) = read_cubin(image).map_err(|e: ImageProblem| e.to_string())?;
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |e: io::Error| format!("{path}: {e}")
    };
    std::fs::create_dir_all(out).map_err(at(out))?;
    let scratch = tempfile::tempdir().map_err(at(&std::env::temp_dir()))?;
    let subject = Subject {
        path: image,
        bytes: &bytes,
        cubin: &cubin,
        tools,
        scratch: scratch.path(),
        keep_in: out,
        bytecode: args.bytecode.as_deref(),
    };
    let mut manifest = VariantManifest::of(&subject);
    let mut crashed = false;
    for (variant, results) in make_all(&subject, &args.only) {
        for result in results {
            match result {
                Ok(made) => {
                    let record = VariantRecord::new(&subject, variant, &made);
                    let path = out.join(&record.file);
                    std::fs::write(&path, &made.bytes).map_err(at(&path))?;
                    manifest.variants.push(record);
                }
                Err(why) => {
                    crashed |= matches!(why, CannotMake::Finding(_));
                    manifest.not_made.push(NotMade::new(variant, &why));
                }
            }
        }
    }
    let path = out.join("variants.json");
    let json = serde_json::to_string_pretty(&manifest).map_err(|e| e.to_string())? + "\n";
    std::fs::write(&path, json).map_err(at(&path))?;
    Ok((manifest, crashed))
}

fn text(out: &Path, manifest: &VariantManifest) -> String {
    let mut text = String::new();
    for variant in &manifest.variants {
        let how = match &variant.compiled {
            Some(compiled) => {
                let equal = compiled.code.iter().filter(|c| c.code_equal).count();
                let (name, version, of) = (&compiled.compiler, &compiled.version, compiled.code.len());
                format!("compiled by {name} {version}, machine code equal in {equal} of {of} kernels")
            }
            None => {
                let bytes: u64 = variant.changes.iter().map(|c| c.bytes).sum();
                format!("{bytes} bytes changed in {} places", variant.changes.len())
            }
        };
        let _ = writeln!(text, "{:<16} {}  ({how})", variant.name, out.join(&variant.file).display());
        for note in &variant.notes {
            let _ = writeln!(text, "{:<16} note: {note}", "");
        }
    }
    for missing in &manifest.not_made {
        let _ = writeln!(text, "{:<16} not made: {}", missing.name, missing.reason);
    }
    let _ = writeln!(text, "manifest         {}", out.join("variants.json").display());
    text
}
