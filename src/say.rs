//! Words for people, on stderr and stdout. A stream that is closed or full must never cost a run: what cannot be said is
//! not said.

use std::fmt::Arguments;
use std::io::{self, Write};

/// A line on stderr.
pub fn log(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Data on stdout. A reader that has gone away (`| head`) is no error; a full disk is.
///
/// # Errors
/// When the data could not be written for another reason.
pub fn data(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
