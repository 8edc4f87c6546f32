//! A context takes only so many modules, and says the wrong thing when it is full.

use super::{Bug, Plan};
use crate::context::Context;
use crate::error::{Answer, Code};

/// This bug.
pub const PLAN: Plan = Plan {
    name: "module-limit",
    text: "a load answers 209 (no image for this device) once a context holds so many live modules",
    owner: "harness",
    kind: "api_error",
    keys: &[
        ("n", "how many live modules a context takes (default 500)"),
        ("code", "what a load answers then (default 209)"),
    ],
    plant: |setting| {
        let code = setting.get("code", Code::NO_BINARY_FOR_GPU.0);
        Ok(Bug::ModuleLimit(ModuleLimit { limit: setting.get("n", 500), code }))
    },
};

/// The bug's keys.
pub struct ModuleLimit {
    limit: usize,
    code: i32,
}

impl ModuleLimit {
    /// Refuses where the context is full.
    pub fn refuse(&self, context: &Context) -> Answer {
        if context.modules.lock().len() >= self.limit { Err(Code(self.code)) } else { Ok(()) }
    }
}
