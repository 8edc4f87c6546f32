//! `stress report RUN`: a run shown again from its folder, also one that was cut short.

use super::run::Format;
use crate::exit::Exit;
use crate::{report, store};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Show a run again from its folder.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The run's folder, or latest
    run: PathBuf,
    /// Folder for results, where `latest` is looked for
    #[arg(long, value_name = "DIR", default_value = "results", env = "STRESS_OUT")]
    out: PathBuf,
    /// What to print: text, json, jsonl
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = super::options::word::<Format>)]
    format: Format,
    /// Write the run for other programs too: hlog=PATH, trace=PATH (repeatable)
    #[arg(long, value_name = "FMT=PATH")]
    export: Vec<report::Export>,
}

/// Runs the command.
pub fn main(args: &ReportArgs) -> Exit {
    let folder = store::resolve(&args.run, &args.out);
    let data = match store::read(&folder) {
        Ok(data) => data,
        Err(e) => {
            crate::say::log(format_args!("stress: not a run: {e}"));
            return Exit::BadInput;
        }
    };
    let summary = report::summary(&data);
    let shown = match args.format {
        Format::Text => report::text(&summary, Some(&folder)),
        Format::Json => serde_json::to_string_pretty(&summary).unwrap_or_default() + "\n",
        Format::Jsonl => serde_json::to_string(&summary).unwrap_or_default() + "\n",
    };
    // A closed pipe (`| head`) is no error.
    let _ = std::io::stdout().write_all(shown.as_bytes());
    super::run::exports(&args.export, &data, &folder)
}
