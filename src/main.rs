//! `stress`: parse, run the command, exit with its code.

use cubin_stress as _;

fn main() {}
