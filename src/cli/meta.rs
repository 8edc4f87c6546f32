//! What the command line says of itself: completions, manual page, schemas.

use super::Cli;
use crate::cubin::inspection::InspectReport;
use crate::cubin::variants::VariantManifest;
use crate::exit::Exit;
use crate::report::summary::Summary;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::io::{self, Write};

/// Print completions for a shell.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub fn completions(args: &CompletionsArgs) -> Exit {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stress", &mut out);
    print(&out)
}

/// Prints the manual page.
pub fn man() -> Exit {
    let mut out = Vec::new();
    match clap_mangen::Man::new(Cli::command()).render(&mut out) {
        Ok(()) => print(&out),
        Err(_) => Exit::Internal,
    }
}

/// The JSON schema of the summary, as committed under `schemas/`.
pub fn summary_schema() -> String {
    let schema = schemars::schema_for!(Summary);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// Print the JSON schema of what a command prints.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Whose: of a run's summary, of `inspect --format json`, of the manifest that `variants` writes
    #[arg(value_enum, default_value_t)]
    of: SchemaOf,
}

/// A document with a schema.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum SchemaOf {
    /// A run's summary.
    #[default]
    Summary,
    /// What `inspect` prints.
    Inspect,
    /// The manifest of variants.
    Variants,
}

impl SchemaOf {
    /// The schema, as committed under `schemas/`.
    pub fn text(self) -> String {
        let schema = match self {
            SchemaOf::Summary => return summary_schema(),
            SchemaOf::Inspect => schemars::schema_for!(InspectReport),
            SchemaOf::Variants => schemars::schema_for!(VariantManifest),
        };
        serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
    }
}

/// Prints a schema.
pub fn schema(args: &SchemaArgs) -> Exit {
    print(args.of.text().as_bytes())
}

fn print(bytes: &[u8]) -> Exit {
    // A closed pipe (`| head`) is no error.
    let _ = io::stdout().write_all(bytes);
    Exit::Clean
}
