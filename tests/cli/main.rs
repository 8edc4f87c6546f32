//! The real binary, driven as a user drives it. One file a subject.

use cubin_stress as _;

mod cases;
mod endings;
mod faults;
mod full_journal;
mod inputs;
mod runs;
mod stress;
