//! The parent: starts disposable children, watches them, and sees to it that nothing of them is left.
//!
//! Never loads the driver and never runs a child's code. `tree.rs` watches any process tree; `trial.rs` is one life of our
//! own worker on top of it.

pub mod compare;
mod ending;
mod events;
mod findings;
mod gate;
mod handover;
pub mod interrupt;
mod life;
pub mod outline;
mod reap;
mod record;
pub mod run;
mod schedule;
mod spawn;
pub mod stderr;
mod trace;
pub mod tree;
pub mod trial;
mod wake;
pub mod watchdog;

pub use spawn::{Gate, Launch};
