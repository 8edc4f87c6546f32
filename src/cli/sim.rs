//! `stress sim`: the simulated driver.

use crate::driver::embedded;
use crate::exit::Exit;
use clap::{Args, Subcommand};

/// The simulated driver: where it is, what it can be made to do.
#[derive(Args, Debug)]
pub struct SimArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a folder that holds libcuda.so, libcuda.so.1 and libcuda.so.VERSION, for -L, LD_LIBRARY_PATH or a mount
    Path,
    /// List the bugs that can be planted, with what each does and whose it is
    Bugs,
    /// List the latency profiles
    Profiles,
}

/// Runs the command.
pub fn main(args: &SimArgs) -> Exit {
    match args.what {
        What::Path => match embedded::folder() {
            Ok(folder) => println!("{}", folder.display()),
            Err(e) => {
                crate::say::log(format_args!("stress: cannot write the simulated driver out: {e}"));
                return Exit::CannotRun;
            }
        },
        What::Bugs => embedded::bugs().iter().for_each(show_bug),
        What::Profiles => embedded::profiles().iter().for_each(|profile| {
            println!("{:<24} {}", profile.name, profile.text);
            show_keys(profile.keys);
        }),
    }
    Exit::Clean
}

fn show_bug(bug: &embedded::Bug) {
    println!("{:<24} {} (owner: {}; {})", bug.name, bug.text, bug.owner, bug.kind);
    show_keys(bug.keys);
}

fn show_keys(keys: &[(&str, &str)]) {
    for (key, text) in keys {
        println!("{:<24}   {key}= {text}", "");
    }
}
