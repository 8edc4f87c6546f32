//! Now and then the device runs another module's kernel: `c = a` where it should be `c = a + b`.

use super::{Bug, Plan};
use crate::random;
use std::sync::atomic::{AtomicU64, Ordering};

/// Launches between two wrong ones under `force=1`.
const FORCED_EVERY: u64 = 8;

/// This bug.
pub const PLAN: Plan = Plan {
    name: "wrong-code",
    text: "a launch now and then runs another module's kernel",
    owner: "driver",
    kind: "wrong_result",
    keys: &[
        ("one_in", "how rare: one launch in so many (default 200)"),
        ("force", "1: every eighth launch, without luck"),
    ],
    plant: |setting| {
        Ok(Bug::WrongCode(WrongCode {
            one_in: setting.get("one_in", 200),
            force: setting.on("force"),
            launches: AtomicU64::new(0),
        }))
    },
};

/// The bug's keys.
pub struct WrongCode {
    one_in: u64,
    force: bool,
    launches: AtomicU64,
}

impl WrongCode {
    /// Whether this launch is a wrong one.
    pub fn now(&self) -> bool {
        if self.force {
            return self.launches.fetch_add(1, Ordering::Relaxed) % FORCED_EVERY == FORCED_EVERY - 1;
        }
        random::one_in(self.one_in)
    }
}
