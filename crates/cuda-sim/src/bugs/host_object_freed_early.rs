//! Equal host objects are shared, and their users counted without care: a load that finds an object reads its count, an
//! unload in another thread takes the last use away and unmaps it, and the load goes on with what is not there any more.
//! The next launch jumps to where its host code was.

use super::meeting::{Window, thread_number};
use super::{Bug, Plan};
use crate::error::Answer;
use crate::host_object::HostObject;
use crate::image::Image;
use crate::lock::Lock;
use crate::wait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// How long a forced load waits for the unload, and how long an unload that went wrong stays for the launch.
const PATIENCE: Duration = Duration::from_millis(250);

/// This bug.
pub const PLAN: Plan = Plan {
    name: "host-object-freed-early",
    text: "equal host objects are shared with a racy count: an unload unmaps code that another module still calls",
    owner: "driver",
    kind: "crash",
    keys: &[
        ("force", "1: a load that found an object waits until another thread unloads it"),
        ("window_us", "how long a load stands between reading and writing the count (default 150)"),
        ("one_in", "how often it does: one load in so many (default 48)"),
    ],
    plant: |setting| Ok(Bug::HostObjectFreedEarly(HostObjectFreedEarly { window: Window::read(setting, 150, 48) })),
};

/// The bug's keys.
pub struct HostObjectFreedEarly {
    window: Window,
}

/// An object with its users.
pub struct Shared {
    image: usize,
    made_by: usize,
    /// Read and written in separate steps: the bug.
    users: AtomicU32,
    /// Loads that stand between the two.
    between: AtomicU32,
    /// It is unmapped.
    gone: AtomicBool,
    object: Arc<HostObject>,
}

/// Objects that another load may share.
#[derive(Default)]
pub struct Open {
    objects: Lock<Vec<Arc<Shared>>>,
}

impl HostObjectFreedEarly {
    /// A load finds an object to share, or makes one.
    pub fn find_or_make(
        &self,
        open: &Open,
        image: &Image,
        make: impl FnOnce() -> Answer<Arc<HostObject>>,
    ) -> Answer<Arc<Shared>> {
        let image = std::ptr::from_ref(image) as usize;
        let found = {
            let mut objects = open.objects.lock();
            let at = objects.iter().rposition(|shared| shared.image == image);
            let found = at.map(|at| objects.remove(at));
            if let Some(shared) = &found {
                shared.between.fetch_add(1, Ordering::SeqCst);
            }
            found
        };
        if let Some(shared) = found {
            let users = shared.users.load(Ordering::SeqCst);
            if self.window.force {
                if shared.made_by != thread_number() {
                    wait::poll(PATIENCE, || shared.gone.load(Ordering::SeqCst));
                }
            } else {
                self.window.pass_sometimes();
            }
            shared.users.store(users + 1, Ordering::SeqCst);
            shared.between.fetch_sub(1, Ordering::SeqCst);
            return Ok(shared);
        }
        let shared = Arc::new(Shared {
            image,
            made_by: thread_number(),
            users: AtomicU32::new(1),
            between: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            object: make()?,
        });
        open.objects.lock().push(Arc::clone(&shared));
        Ok(shared)
    }

    /// An unload gives its use up; the last one unmaps the object.
    pub fn give_up(&self, open: &Open, shared: &Arc<Shared>) {
        let users = shared.users.load(Ordering::SeqCst);
        shared.users.store(users.saturating_sub(1), Ordering::SeqCst);
        if users > 1 {
            return;
        }
        {
            // Under the lock, so that a load either finds it here no more, or is known to stand between.
            let mut objects = open.objects.lock();
            objects.retain(|other| !Arc::ptr_eq(other, shared));
        }
        shared.object.unmap();
        shared.gone.store(true, Ordering::SeqCst);
        if shared.between.load(Ordering::SeqCst) != 0 {
            // The launch that is about to jump there ends the process; where none comes, nothing happened.
            wait::poll(PATIENCE, || false);
        }
    }
}

impl Shared {
    /// The object.
    pub fn object(&self) -> &Arc<HostObject> {
        &self.object
    }
}
