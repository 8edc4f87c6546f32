//! There is no GPU: `cuInit` says so.

use super::{Bug, Plan};
use crate::error::{Answer, Code};

/// This bug.
pub const PLAN: Plan = Plan {
    name: "no-device",
    text: "cuInit answers 100, as where the driver is installed and no GPU is",
    owner: "environment",
    kind: "api_error",
    keys: &[("code", "what cuInit answers instead of 100")],
    plant: |setting| Ok(Bug::NoDevice(NoDevice { code: setting.get("code", Code::NO_DEVICE.0) })),
};

/// The bug's keys.
pub struct NoDevice {
    code: i32,
}

impl NoDevice {
    /// Refuses.
    pub fn refuse(&self) -> Answer {
        Err(Code(self.code))
    }
}
