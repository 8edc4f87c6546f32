//! `stress inspect IMAGE...`: what images are, and in what they differ. Runs no driver.

use crate::cubin::inspection::{
    INSPECT_SCHEMA, InspectReport, Inspection, Refused, differences, inspect, print_differences, print_image,
    print_line,
};
use crate::cubin::{ChildProbe, HostProbe, NoProbe, read_file};
use crate::exit::Exit;
use clap::{Args, ValueEnum};
use cubin_image::ImageKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// More images than this are shown as one line each, and not compared.
const IN_FULL: usize = 16;
/// Endings of files that are images by their name, and so are named when they are not.
const IMAGE_ENDINGS: [&str; 5] = ["cubin", "fatbin", "ptx", "tilebc", "tileirbc"];

/// How an inspection is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// What can be said to `stress inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Images, or folders of them
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    format: InspectFormat,
    /// Do not call host callbacks (in a child) to see what they write
    #[arg(long)]
    no_probe: bool,
    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command: 0; 2 where a file is no image; 3 where a host object is for another machine.
pub fn main(args: &InspectArgs) -> Exit {
    let probe: Box<dyn HostProbe> = match std::env::current_exe() {
        Ok(own) if !args.no_probe => Box::new(ChildProbe::new(own)),
        _ => Box::new(NoProbe),
    };
    let files: Vec<Candidate> = args.images.iter().flat_map(|path| candidates(path)).collect();
    let bar = bar(files.len() as u64, args.quiet || args.images.len() == files.len());
    let results: Vec<Option<Result<Inspection, Refused>>> = files
        .par_iter()
        .map(|file| {
            let result = file.inspect(probe.as_ref());
            bar.inc(1);
            result
        })
        .collect();
    bar.finish_and_clear();
    let (mut images, mut refused) = (Vec::new(), Vec::new());
    for result in results.into_iter().flatten() {
        match result {
            Ok(image) => images.push(image),
            Err(error) => refused.push(error),
        }
    }
    if images.is_empty() && refused.is_empty() {
        let paths: Vec<String> = args.images.iter().map(|p| p.display().to_string()).collect();
        let error = "at offset 0x0: expected images, found a folder without any".into();
        refused.push(Refused { path: paths.join(" "), error });
    }
    report(args, images, refused)
}

fn report(args: &InspectArgs, images: Vec<Inspection>, refused: Vec<Refused>) -> Exit {
    let few = images.len() <= IN_FULL;
    let rows = if few && images.len() > 1 { differences(&images) } else { Vec::new() };
    let report = InspectReport { schema: INSPECT_SCHEMA.into(), images, refused, differences: rows };
    let printed = match args.format {
        InspectFormat::Json => serde_json::to_string_pretty(&report).map(|json| json + "\n").map_err(|e| e.to_string()),
        InspectFormat::Text => text(&report, few).map_err(|e| e.to_string()),
    };
    let text = match printed {
        Ok(text) => text,
        Err(error) => {
            crate::say::log(format_args!("stress: {error}"));
            return Exit::Internal;
        }
    };
    // Nobody reads what cannot be printed: a closed pipe is no error of ours.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    let mut exit = Exit::Clean;
    for refused in &report.refused {
        crate::say::log(format_args!("stress: {}: {}", refused.path, refused.error));
        exit = exit.or(Exit::BadInput);
    }
    for image in &report.images {
        for host in image.host_object.iter().filter(|h| !h.native) {
            let here = std::env::consts::ARCH.replace('_', "-");
            let (path, at, machine) = (&image.path, host.offset, &host.machine);
            crate::say::log(format_args!(
                "stress: {path}: at offset {at:#x}: expected a host object for {here}, found one for {machine}"
            ));
            exit = exit.or(Exit::CannotRun);
        }
    }
    exit
}

fn text(report: &InspectReport, in_full: bool) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    for image in &report.images {
        match in_full {
            true => print_image(image, &mut out)?,
            false => print_line(image, &mut out)?,
        }
        if in_full {
            out.push('\n');
        }
    }
    if !report.differences.is_empty() {
        print_differences(&report.images, &report.differences, &mut out)?;
    } else if in_full && report.images.len() > 1 {
        out.push_str("no fact differs\n");
    }
    if !in_full {
        let (images, tile) = (report.images.len(), report.images.iter().filter(|i| i.tile).count());
        out.push_str(&format!("{images} images, {tile} of them Tile IR; {} files refused\n", report.refused.len()));
    }
    Ok(out)
}

/// A file to look at.
struct Candidate {
    path: PathBuf,
    /// It was named by the user, or is an image by its name: it must be one.
    must_be_image: bool,
}

impl Candidate {
    /// None where a file that was found in a folder turns out not to be an image.
    fn inspect(&self, probe: &dyn HostProbe) -> Option<Result<Inspection, Refused>> {
        let path = self.path.display().to_string();
        let refuse = |error: String| Some(Err(Refused { path: path.clone(), error }));
        match read_file(&self.path) {
            Ok(bytes) => {
                let is_image =
                    !matches!(ImageKind::detect(&bytes), ImageKind::Unknown | ImageKind::Empty | ImageKind::Gzip);
                if !is_image && !self.must_be_image {
                    return None;
                }
                inspect(&path, &bytes, probe).map_or_else(|e| refuse(e.to_string()), |image| Some(Ok(image)))
            }
            Err(_) if !self.must_be_image => None,
            Err(error) => refuse(error.reason()),
        }
    }
}

/// The file itself, or all regular files of a folder, in order.
fn candidates(path: &Path) -> Vec<Candidate> {
    if !path.is_dir() {
        return vec![Candidate { path: path.to_owned(), must_be_image: true }];
    }
    let mut found = Vec::new();
    walk(path, &mut found, 0);
    found.sort();
    let by_name = |path: &Path| path.extension().is_some_and(|e| IMAGE_ENDINGS.iter().any(|known| e == *known));
    found.into_iter().map(|path| Candidate { must_be_image: by_name(&path), path }).collect()
}

/// Links to folders are not followed: a loop of them has no end.
fn walk(folder: &Path, found: &mut Vec<PathBuf>, depth: usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < 64 {
            walk(&entry.path(), found, depth + 1);
        } else if kind.is_file() || (kind.is_symlink() && entry.path().is_file()) {
            found.push(entry.path());
        }
    }
}

fn bar(length: u64, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
    }
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} images {eta}").unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}
