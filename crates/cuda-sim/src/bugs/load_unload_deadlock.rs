//! A load takes the lock of modules, then that of host code; an unload takes them the other way round.

use super::meeting::{Meeting, Window};
use super::{Bug, Plan};
use crate::lock::Lock;
use crate::wait;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a forced load waits for an unload that holds the other lock.
const PATIENCE: Duration = Duration::from_millis(100);

/// This bug.
pub const PLAN: Plan = Plan {
    name: "load-unload-deadlock",
    text: "a load and an unload take two locks in opposite order",
    owner: "driver",
    kind: "hang",
    keys: &[
        ("force", "1: a load that holds the first lock waits for an unload that holds the second"),
        ("window_us", "how long a load stands between the locks (default 100)"),
        ("one_in", "how often it does: one load in so many (default 64)"),
    ],
    plant: |setting| {
        let (window, meeting) = (Window::read(setting, 100, 64), Meeting::default());
        Ok(Bug::LoadUnloadDeadlock(LoadUnloadDeadlock { window, meeting }))
    },
};

/// The bug's keys.
pub struct LoadUnloadDeadlock {
    window: Window,
    meeting: Meeting,
}

/// A context's two locks.
#[derive(Default)]
pub struct TwoLocks {
    modules: Lock<()>,
    host_code: Lock<()>,
    /// An unload holds `host_code`.
    unloading: AtomicBool,
}

impl LoadUnloadDeadlock {
    /// A load.
    pub fn load(&self, locks: &TwoLocks) {
        self.meeting.take_part();
        let _modules = locks.modules.lock();
        if self.window.force {
            if self.meeting.has_company() {
                wait::poll(PATIENCE, || locks.unloading.load(Ordering::SeqCst));
            }
        } else {
            self.window.pass_sometimes();
        }
        let _host_code = locks.host_code.lock();
    }

    /// An unload.
    pub fn unload(&self, locks: &TwoLocks) {
        let _host_code = locks.host_code.lock();
        locks.unloading.store(true, Ordering::SeqCst);
        let _modules = locks.modules.lock();
        locks.unloading.store(false, Ordering::SeqCst);
    }
}
