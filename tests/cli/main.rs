//! The real binary, driven as a user drives it. One file a subject.

use cubin_stress as _;

mod cases;
mod endings;
mod exports;
mod faults;
mod inputs;
mod runs;
mod stress;
