//! What the command line says of itself: completions, manual page, schemas.

use super::Cli;
use crate::exit::Exit;
use crate::report::summary::Summary;
use clap::{Args, CommandFactory};
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

/// Prints the schema of the summary.
pub fn schema() -> Exit {
    print(summary_schema().as_bytes())
}

fn print(bytes: &[u8]) -> Exit {
    // A closed pipe (`| head`) is no error.
    let _ = io::stdout().write_all(bytes);
    Exit::Clean
}
