//! Stresses CUDA module load, launch and unload, catches what breaks in disposable children, and says whose fault it is.
//!
//! `plan` says what to do; the `supervisor` starts a disposable `worker` and watches it; both meet only in the `journal`
//! (shared memory); when the child dies or hangs, `capture` freezes the evidence; `verdict` reads it and names an owner;
//! `report` shows it to people. `docs/architecture.md` has the picture.

pub mod capture;
pub mod cli;
pub mod cubin;
pub mod driver;
pub mod evidence;
pub mod exit;
mod host;
pub mod journal;
pub mod plan;
pub mod random;
pub mod report;
mod say;
pub mod stats;
pub mod store;
pub mod supervisor;
pub mod verdict;
pub mod vocabulary;
pub mod worker;
