//! The child: does one order and is gone. Started by the supervisor as the hidden command `worker`, with its order, image,
//! journal and gate in the descriptors that `handed.rs` names.
//!
//! It writes to the journal only. It shares nothing else with the supervisor, and nothing that happens to it matters.
#![allow(unsafe_code)] // Calls the driver's functions directly: the sequence of calls is the experiment.

mod api;
mod arguments;
mod churn;
mod crew;
pub mod device;
mod handed;
mod image;
mod kept;
mod last_words;
mod lock;
mod order_check;
mod pace;
mod player;
pub mod probe;
mod run;
mod script;
mod setup;
mod target;
mod trouble;
mod verify;

pub use handed::{GATE, IMAGE, JOURNAL, ORDER};

use crate::journal::JournalWriter;
use handed::Gate;
use std::io;
use std::process::ExitCode;
use trouble::Failure;

/// Exit status: this program's own fault.
const INTERNAL: u8 = 70;

/// The hidden command `worker`: waits at the gate, does its order, and says by its exit status how that went (0 done, 2 the
/// plan does not fit the image, 3 it could not begin, 70 internal error).
pub fn main() -> ExitCode {
    match std::panic::catch_unwind(|| worker().unwrap_or_else(|error| complain(&error))) {
        Ok(status) => ExitCode::from(status),
        // The panic's own message stands on stderr.
        Err(_) => ExitCode::from(INTERNAL),
    }
}

fn complain(error: &io::Error) -> u8 {
    eprintln!("worker: {error} (this command is for the supervisor: it needs descriptors {ORDER} to {GATE})");
    INTERNAL
}

/// Takes the language's own handlers off the memory faults: they would let each fault happen twice, and a program written
/// in another language has none.
fn die_plainly() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default disposition runs no code of ours; no other thread exists yet.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn worker() -> io::Result<u8> {
    die_plainly();
    let gate = handed::pass_gate()?;
    if gate == Gate::Shut {
        return Ok(INTERNAL);
    }
    let order = handed::order()?;
    let journal = handed::journal()?;
    if gate == Gate::Untraced {
        last_words::install(&journal);
    }
    let done = match handed::images(&order)? {
        Ok(images) => run::run(&order, &images, journal),
        Err(reason) => Err(Failure::plan(reason)),
    };
    Ok(match done {
        Ok(()) => {
            journal.set_finished();
            0
        }
        Err(failure) => {
            write_down(&journal, &failure);
            failure.status()
        }
    })
}

fn write_down(journal: &JournalWriter, failure: &Failure) {
    journal.note(failure.kind, None, failure.call, failure.code, 0, 0, &failure.text);
}
