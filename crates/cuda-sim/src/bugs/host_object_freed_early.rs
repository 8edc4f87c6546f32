//! Equal host objects are shared, and their users counted without care: a load that finds an object reads its count, an
//! unload in another thread takes the last use away and unmaps it, and the load goes on with what is not there any more.
//! The next launch jumps to where its host code was.
#![allow(unsafe_code)] // hands a reference from thread to thread

use super::meeting::{Meeting, Window};
use super::{Bug, Plan};
use crate::error::Answer;
use crate::host_object::HostObject;
use crate::image::Image;
use crate::lock::Lock;
use crate::wait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// How long an unload that went wrong stays for the launch.
const STAY: Duration = Duration::from_millis(250);

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
    plant: |setting| {
        let (window, meeting) = (Window::read(setting, 150, 48), Meeting::default());
        Ok(Bug::HostObjectFreedEarly(HostObjectFreedEarly { window, meeting }))
    },
};

/// The bug's keys.
pub struct HostObjectFreedEarly {
    window: Window,
    meeting: Meeting,
}

/// An object with its users.
pub struct Shared {
    image: usize,
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
        self.meeting.take_part();
        let image = std::ptr::from_ref(image) as usize;
        let found = if self.window.force { self.wait_for_one(image) } else { self.find(open, image) };
        if let Some(shared) = found {
            return Ok(shared);
        }
        let (users, between, gone) = (AtomicU32::new(1), AtomicU32::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { image, users, between, gone, object: make()? });
        if !self.window.force {
            open.objects.lock().push(Arc::clone(&shared));
        }
        Ok(shared)
    }

    /// Takes the newest object of that image, and counts one more user of it in two steps.
    fn find(&self, open: &Open, image: usize) -> Option<Arc<Shared>> {
        let shared = {
            let mut objects = open.objects.lock();
            let at = objects.iter().rposition(|shared| shared.image == image)?;
            let shared = objects.remove(at);
            shared.between.fetch_add(1, Ordering::SeqCst);
            shared
        };
        let users = shared.users.load(Ordering::SeqCst);
        self.window.pass_sometimes();
        shared.users.store(users + 1, Ordering::SeqCst);
        shared.between.fetch_sub(1, Ordering::SeqCst);
        Some(shared)
    }

    /// The same when forced: between its two steps the load waits until another thread has unmapped the object.
    fn wait_for_one(&self, image: usize) -> Option<Arc<Shared>> {
        let handed = self.meeting.wait_to_be_handed(image)?;
        // SAFETY: `give_up` handed one reference over.
        let shared = unsafe { Arc::from_raw(handed as *const Shared) };
        shared.users.store(2, Ordering::SeqCst);
        self.meeting.done();
        Some(shared)
    }

    /// An unload gives its use up; the last one unmaps the object.
    pub fn give_up(&self, open: &Open, shared: &Arc<Shared>) {
        let users = shared.users.load(Ordering::SeqCst);
        shared.users.store(users.saturating_sub(1), Ordering::SeqCst);
        if users > 1 || shared.gone.swap(true, Ordering::SeqCst) {
            return;
        }
        // Under the lock, so that a load either finds it here no more, or is known to stand between.
        open.objects.lock().retain(|other| !Arc::ptr_eq(other, shared));
        shared.object.unmap();
        let awaited = self.window.force && self.meeting.awaited_by() == Some(shared.image);
        if awaited && !self.hand(shared) {
            return;
        }
        if awaited || shared.between.load(Ordering::SeqCst) != 0 {
            // The launch that is about to jump there ends the process; where none comes, nothing happened.
            wait::poll(STAY, || false);
        }
    }

    fn hand(&self, shared: &Arc<Shared>) -> bool {
        let reference = Arc::into_raw(Arc::clone(shared));
        let taken = self.meeting.hand(reference as usize);
        if !taken {
            // SAFETY: no one took the reference.
            drop(unsafe { Arc::from_raw(reference) });
        }
        taken
    }
}

impl Shared {
    /// The object.
    pub fn object(&self) -> &Arc<HostObject> {
        &self.object
    }
}
