//! Making a context fails in one child of a run.

use super::{Bug, Plan, child};
use crate::error::{Answer, Code};

/// This bug.
pub const PLAN: Plan = Plan {
    name: "fail-context",
    text: "making or retaining a context fails in the k-th child of a run",
    owner: "environment",
    kind: "api_error",
    keys: &[
        ("k", "the child's number, from 0 (default 0)"),
        ("of", "again every so many children (default: never again)"),
        ("all", "1: in every child"),
        ("code", "what it answers (default 2, out of memory)"),
    ],
    plant: |setting| {
        let (k, of): (u64, u64) = (setting.get("k", 0), setting.get("of", 0));
        let now = setting.on("all") || child() == k || (of > 0 && child() % of == k % of);
        Ok(Bug::FailContext(FailContext { now, code: setting.get("code", Code::OUT_OF_MEMORY.0) }))
    },
};

/// The bug's keys.
pub struct FailContext {
    now: bool,
    code: i32,
}

impl FailContext {
    /// Refuses where it is this child's turn.
    pub fn refuse(&self) -> Answer {
        if self.now { Err(Code(self.code)) } else { Ok(()) }
    }
}
