//! The library that compiles Tile IR is not installed.

use super::{Bug, Plan};
use crate::error::{Answer, Code};
use cubin_image::ImageKind;

/// This bug.
pub const PLAN: Plan = Plan {
    name: "missing-jit",
    text: "Tile images and Tile IR bytecode answer 221: the JIT compiler's library is missing",
    owner: "environment",
    kind: "api_error",
    keys: &[],
    plant: |_| Ok(Bug::MissingJit),
};

/// Refuses what would have to be compiled; Tile cubins are refused once they are known as such.
pub fn refuse(bytes: &[u8]) -> Answer {
    match ImageKind::detect(bytes) {
        ImageKind::TileBytecode => Err(Code::JIT_COMPILER_NOT_FOUND),
        _ => Ok(()),
    }
}
