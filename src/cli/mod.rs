//! What a user can say: one file a command, each flag defined once.

mod derived;
mod inspect;
pub mod meta;
mod options;
mod plan_file;
mod report;
mod run;
mod sim;
mod sources;
mod span;
mod variants;

use crate::exit::Exit;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Stress CUDA module load, launch and unload, and say whose fault it is when the process dies.
///
/// Two images or more are compared. SECONDS may also be written as 90s, 2m or 1h.
#[derive(Debug, Parser)]
#[command(name = "stress", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = "stress [OPTIONS] <IMAGE>... [SECONDS]\n       stress <COMMAND>")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The simulated driver: where it is, what it can be made to do.
    Sim(sim::SimArgs),
    /// Show a run again from its folder.
    Report(report::ReportArgs),
    /// Show what images are and in what they differ; runs no driver
    Inspect(inspect::InspectArgs),
    /// Make images that differ from one in one thing each
    Variants(variants::VariantsArgs),
    /// Print completions for a shell
    Completions(meta::CompletionsArgs),
    /// Print the manual page
    Man(NoArgs),
    /// Print the JSON schema of what a command prints
    Schema(meta::SchemaArgs),
    /// The child's side; started by the supervisor only.
    #[command(hide = true)]
    Worker(NoArgs),
    /// Calls an image's host callbacks on marked buffers; started by `inspect` only.
    #[command(hide = true)]
    ProbeCallbacks(NoArgs),
    /// Prints the device's architecture; started where a source is compiled for it.
    #[command(hide = true)]
    DeviceArch(DeviceArchArgs),
    /// Becomes another program that dies with its parent; started for compilers and probes only.
    #[command(hide = true)]
    Leash(LeashArgs),
}

#[derive(Args, Debug)]
struct NoArgs {}

#[derive(Args, Debug)]
struct DeviceArchArgs {
    /// The driver library
    library: PathBuf,
    /// Which device
    #[arg(allow_negative_numbers = true)]
    device: i32,
}

#[derive(Args, Debug)]
struct LeashArgs {
    /// The parent's process id
    parent: i32,
    /// Program and arguments
    #[arg(last = true, required = true)]
    words: Vec<OsString>,
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap, and success to a shell.
            let _ = error.print();
            return if error.use_stderr() { Exit::BadInput } else { Exit::Clean }.into();
        }
    };
    let exit = match cli.command {
        None => run::main(&cli.run),
        Some(Command::Sim(args)) => sim::main(&args),
        Some(Command::Report(args)) => report::main(&args),
        Some(Command::Completions(args)) => meta::completions(&args),
        Some(Command::Man(_)) => meta::man(),
        Some(Command::Schema(args)) => meta::schema(&args),
        Some(Command::Inspect(args)) => inspect::main(&args),
        Some(Command::Variants(args)) => variants::main(&args),
        Some(Command::Worker(_)) => return crate::worker::main(),
        Some(Command::ProbeCallbacks(_)) => return crate::worker::probe::main(),
        Some(Command::DeviceArch(args)) => return crate::worker::device::main(&args.library, args.device),
        Some(Command::Leash(args)) => return crate::cubin::leash::main(args.parent, &args.words),
    };
    exit.into()
}
