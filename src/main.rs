//! `stress`: parse, run the command, exit with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    cubin_stress::cli::main()
}
