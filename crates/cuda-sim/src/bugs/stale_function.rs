//! How the driver takes a function of an unloaded module. The caller's fault, whatever the reaction.
#![allow(unsafe_code)] // one of the reactions is a fault

use super::{Bug, Plan};
use crate::context::Context;
use crate::error::{Answer, Code};

/// This bug.
pub const PLAN: Plan = Plan {
    name: "stale-function",
    text: "a launch of a function of an unloaded module: error 400, sticky error 716, or a fault inside libcuda",
    owner: "application",
    kind: "crash",
    keys: &[("reaction", "400 (default), 716 or fault")],
    plant: |setting| match setting.text("reaction") {
        None | Some("400") => Ok(Bug::StaleFunction(Reaction::Refuse)),
        Some("716") => Ok(Bug::StaleFunction(Reaction::Stick)),
        Some("fault") => Ok(Bug::StaleFunction(Reaction::Fault)),
        Some(other) => Err(format!("stale-function's reaction is 400, 716 or fault, not '{other}'")),
    },
};

/// What happens.
pub enum Reaction {
    /// The handle is refused.
    Refuse,
    /// The device runs into something that is no code any more.
    Stick,
    /// The driver follows a pointer out of the function's memory.
    Fault,
}

impl Reaction {
    /// Reacts.
    pub fn answer(&self, context: &Context, handle: u64) -> Answer {
        match self {
            Reaction::Refuse => Err(Code::INVALID_HANDLE),
            Reaction::Stick => {
                context.fail(Code::MISALIGNED_ADDRESS);
                Ok(())
            }
            Reaction::Fault => {
                let record = Stale { module: 0xa5a5_a5a5_a5a5_a5a5, kernel: handle };
                // SAFETY: none: this is the planted fault, a load through a pointer in freed memory.
                unsafe { follow(std::hint::black_box(&record)) }
            }
        }
    }
}

/// What is left of a function.
#[repr(C)]
struct Stale {
    module: u64,
    kernel: u64,
}

#[inline(never)]
unsafe fn follow(record: &Stale) -> Answer {
    // SAFETY: see the caller.
    let kernels = unsafe { ((record.module + 0x28) as *const u64).read_volatile() };
    if kernels == record.kernel { Ok(()) } else { Err(Code::INVALID_HANDLE) }
}
