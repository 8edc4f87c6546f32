//! One list of host-object records per context, walked by launches without the lock that loads and unloads take: an unload
//! frees a record while a launch in another thread stands on it. Only Tile images add records.
#![allow(unsafe_code)] // the planted fault

use super::freed::{self, Head, OPERATIONS, Shape};
use super::meeting::{Meeting, Window};
use super::{Bug, Plan};
use crate::lock::Lock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Records that a launch looks at: the newest ones.
const LOOKED_AT: usize = 32;

/// This bug.
pub const PLAN: Plan = Plan {
    name: "callback-list-race",
    text: "an unload frees a host-object record while a launch walks the context's list of them (Tile images only)",
    owner: "driver",
    kind: "crash",
    keys: &[
        ("force", "1: the launch waits for an unload in another thread and gets its record"),
        ("window_us", "how long a launch stands on a record (default 100)"),
        ("one_in", "how often it does: one launch in so many (default 128)"),
        freed::KEYS[0],
        freed::KEYS[1],
    ],
    plant: |setting| {
        let (window, shape) = (Window::read(setting, 100, 128), Shape::read(setting)?);
        Ok(Bug::CallbackListRace(CallbackListRace { window, shape, meeting: Meeting::default() }))
    },
};

/// The bug's keys.
pub struct CallbackListRace {
    window: Window,
    shape: Shape,
    meeting: Meeting,
}

/// A record.
#[repr(C)]
pub struct Record {
    head: Head,
    next: AtomicPtr<Record>,
    rest: [u64; 4],
}

/// A context's list.
#[derive(Default)]
pub struct List {
    first: AtomicPtr<Record>,
    lock: Lock<()>,
}

impl CallbackListRace {
    /// A load adds a record.
    pub fn add(&self, list: &List) -> *mut Record {
        self.meeting.take_part();
        let record = self.shape.allocate(size_of::<Record>()).cast::<Record>();
        if record.is_null() {
            return record;
        }
        let _held = list.lock.lock();
        let next = AtomicPtr::new(list.first.load(Ordering::Acquire));
        let head = Head { links: [0x51; 2], operations: &OPERATIONS };
        // SAFETY: the record is fresh.
        unsafe { record.write(Record { head, next, rest: [0; 4] }) };
        list.first.store(record, Ordering::Release);
        record
    }

    /// An unload takes its record out and frees it, while launches may stand on it.
    pub fn remove(&self, list: &List, record: *mut Record) {
        if record.is_null() {
            return;
        }
        let awaited = self.window.force && self.meeting.is_awaited(record as usize);
        {
            let _held = list.lock.lock();
            let mut link = &list.first;
            loop {
                let at = link.load(Ordering::Acquire);
                if at.is_null() {
                    break;
                }
                // SAFETY: records in the list are live while the lock is held.
                let after = unsafe { &(*at).next };
                if at == record {
                    link.store(after.load(Ordering::Acquire), Ordering::Release);
                    break;
                }
                link = after;
            }
            // SAFETY: this thread took it out. That others may stand on it is the bug.
            unsafe { self.shape.free(record.cast(), size_of::<Record>()) };
        }
        if awaited {
            let _ = self.meeting.hand(record as usize);
        }
        self.meeting.stay_for_readers();
    }

    /// A launch walks the list.
    pub fn walk(&self, list: &List, own: *mut Record) {
        self.meeting.read(|| {
            if self.window.force {
                if let Some(record) = self.meeting.wait_to_be_handed(own as usize) {
                    // SAFETY: none: the record was freed by the thread that handed it over.
                    unsafe { self.shape.follow(record as *const Head) };
                    self.meeting.done();
                }
                return;
            }
            let mut at = list.first.load(Ordering::Acquire);
            let mut paused = false;
            for _ in 0..LOOKED_AT {
                if at.is_null() {
                    break;
                }
                if at != own && !paused {
                    paused = true;
                    self.window.pass_sometimes();
                }
                // SAFETY: none: an unload may have freed it.
                unsafe {
                    self.shape.follow(at.cast::<Head>());
                    at = (*at).next.load(Ordering::Acquire);
                }
            }
        });
    }
}
