//! `--with-twin` and `--with-variants`: further arms, made from the images of the run.

use super::options::Options;
use super::sources::NoImages;
use crate::cubin::Image;
use crate::cubin::sources::{SourceKind, Workshop, load};
use crate::cubin::variants::{CannotMake, Subject, UniqueByte, Variant, VariantManifest, VariantRecord, make_all};
use crate::exit::Exit;
use cubin_image::{Cubin, ImageKind};
use std::path::{Path, PathBuf};

/// Variants that a comparison is made with: those that fault on purpose are not among them.
const COMPARED: [&str; 7] =
    ["regular-twin", "no-host-object", "no-debug", "scrubbed", "language-ptx", "renamed", "unique"];
/// The built-in regular image that stands in for a twin of the add kernel where there is no ptxas.
const STAND_IN: &str = "ptx:add";

/// The images, each followed by what is derived from it as the options ask.
///
/// # Errors
/// Where a twin was asked for and none can be had, or nothing can be written.
pub fn with_derived(options: &Options, images: Vec<Image>, workshop: &Workshop) -> Result<Vec<Image>, NoImages> {
    let wanted: &[&str] = match (options.with_variants, options.with_twin) {
        (Some(true), _) => &COMPARED,
        (_, Some(true)) => &COMPARED[..1],
        _ => return Ok(images),
    };
    let folder = options.out.clone().unwrap_or_else(|| "results".into()).join("variants");
    let mut all = Vec::new();
    for image in images {
        let derived = derive(options, &image, wanted, &folder, workshop)?;
        all.push(image);
        all.extend(derived);
    }
    Ok(all)
}

fn derive(
    options: &Options,
    image: &Image,
    wanted: &[&str],
    folder: &Path,
    workshop: &Workshop,
) -> Result<Vec<Image>, NoImages> {
    if image.facts.kind != ImageKind::Cubin || !image.facts.tile {
        return Ok(Vec::new());
    }
    let bad = |text: String| NoImages { exit: Exit::BadInput, text };
    let cubin = Cubin::parse(&image.bytes).map_err(|e| bad(format!("{}: {e}", image.path.display())))?;
    let subject = Subject {
        path: &image.path,
        bytes: &image.bytes,
        cubin: &cubin,
        tools: workshop.tools,
        scratch: workshop.scratch,
        keep_in: workshop.keep_in,
        bytecode: None,
    };
    let only: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    // The image's own folder comes last, so that arms are named after it: `tile/add.sm_120.regular-twin`.
    let own = image.path.parent().and_then(Path::file_name).unwrap_or_else(|| "image".as_ref());
    let folder = folder.join(&image.sha256[..12]).join(own);
    let mut manifest = VariantManifest::of(&subject);
    let mut made = Vec::new();
    for (variant, results) in make_all(&subject, &only) {
        for result in results {
            match result {
                Ok(one) => {
                    let record = VariantRecord::new(&subject, variant, &one);
                    let path = write(&folder, &record.file, &one.bytes)?;
                    let mut derived = Image::from_bytes(&path, one.bytes)
                        .map_err(|e| NoImages { exit: e.exit(), text: e.to_string() })?;
                    if variant.name == "unique" {
                        derived.unique_byte = UniqueByte::of(&cubin, &image.bytes).map(|byte| byte.offset);
                    }
                    derived.launch = renamed(options, variant, &cubin, &record.kernels);
                    made.push(derived);
                    manifest.variants.push(record);
                }
                Err(why) => made.extend(without(image, variant, &why, workshop)?),
            }
        }
    }
    let json = serde_json::to_string_pretty(&manifest).map_err(|e| bad(e.to_string()))?;
    write(&folder, "variants.json", (json + "\n").as_bytes())?;
    Ok(made)
}

/// The name under which `renamed` has the kernel that the run launches.
fn renamed(options: &Options, variant: &Variant, cubin: &Cubin, names: &[String]) -> Option<String> {
    if variant.name != "renamed" {
        return None;
    }
    let wanted = options.kernel.as_deref().unwrap_or(crate::cubin::USUAL_KERNEL);
    let only = (cubin.kernels.len() == 1).then_some(0);
    let index = cubin.kernels.iter().position(|k| k.name == wanted).or(only)?;
    names.get(index).cloned()
}

/// A variant that cannot be made is left out and named; of a twin that was asked for, there is a stand-in or no run.
fn without(image: &Image, variant: &Variant, why: &CannotMake, workshop: &Workshop) -> Result<Option<Image>, NoImages> {
    let reason = crate::cubin::variants::NotMade::new(variant, why).reason;
    (workshop.say)(&format!("{}: {} is left out: {reason}", image.path.display(), variant.name));
    if variant.name != "regular-twin" {
        return Ok(None);
    }
    let report_kernel = |k: &cubin_image::Kernel| k.name == crate::cubin::USUAL_KERNEL && k.parameters.len() == 15;
    let is_report = image.facts.kernels.iter().flatten().any(report_kernel);
    let arch = image.facts.arch.ok_or_else(|| reason.clone());
    let for_image = Workshop { arch: &|| arch.clone(), ..*workshop };
    match is_report.then(|| load(Path::new(STAND_IN), Some(SourceKind::BuiltIn), &for_image)) {
        Some(Ok(found)) => {
            (workshop.say)(&format!("{STAND_IN} stands in for it: the same kernel and parameters, other machine code"));
            Ok(found.into_iter().next())
        }
        _ => Err(NoImages {
            exit: Exit::CannotRun,
            text: format!("no regular twin of {}: {reason}", image.path.display()),
        }),
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, NoImages> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, bytes))
        .map_err(|e| NoImages { exit: Exit::CannotRun, text: format!("{}: {e}", path.display()) })?;
    Ok(path)
}
