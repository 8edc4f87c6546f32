//! What a user can say: one file a command, each flag defined once.

pub mod meta;
mod options;
mod plan_file;
mod report;
mod run;
mod sim;
mod span;

use crate::exit::Exit;

use clap::{Args, Parser, Subcommand};
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
    /// Print completions for a shell
    Completions(meta::CompletionsArgs),
    /// Print the manual page
    Man(NoArgs),
    /// Print the JSON schema of the summary
    Schema(NoArgs),
    /// The child's side; started by the supervisor only.
    #[command(hide = true)]
    Worker(NoArgs),
}

#[derive(Args, Debug)]
struct NoArgs {}

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
        Some(Command::Schema(_)) => meta::schema(),
        Some(Command::Worker(_)) => return crate::worker::main(),
    };
    exit.into()
}
