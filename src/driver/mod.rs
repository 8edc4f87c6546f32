//! The one door to the CUDA driver.
//!
//! `entries.rs` is the one list of entry points, `library.rs` chooses and opens the library, `search.rs` finds it as the
//! loader would, `identity.rs` says what it is without loading it, `codes.rs` names the driver's codes where no driver can
//! be asked. The supervisor uses `choose` and what stands in files; only a worker calls `open`.
#![allow(unsafe_code)] // Function pointers of a library that is opened at run time, and the symbols that `cust` links against.

pub mod codes;
pub mod embedded;
pub mod entries;
pub mod identity;
pub mod library;
mod search;

pub use identity::Identity;
pub use library::{Chosen, OpenError, Unusable, choose, open};
