//! A context's table of functions is grown without a lock: a look-up moves it to a larger block and frees the old one while
//! a launch in another thread reads from it. Any image.
#![allow(unsafe_code)] // the planted fault

use super::freed::{self, Head, OPERATIONS, Shape};
use super::meeting::{Meeting, Window};
use super::{Bug, Plan};
use crate::lock::Lock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Entries by which the table grows.
const STEP: usize = 32;

/// This bug.
pub const PLAN: Plan = Plan {
    name: "module-table-race",
    text: "a look-up grows the context's table of functions while a launch in another thread reads it (any image)",
    owner: "driver",
    kind: "crash",
    keys: &[
        ("force", "1: the launch waits until another thread grows the table"),
        ("window_us", "how long a launch stands on the table (default 100)"),
        ("one_in", "how often it does: one launch in so many (default 16)"),
        freed::KEYS[0],
        freed::KEYS[1],
    ],
    plant: |setting| {
        let (window, shape) = (Window::read(setting, 100, 16), Shape::read(setting)?);
        Ok(Bug::ModuleTableRace(ModuleTableRace { window, shape, meeting: Meeting::default() }))
    },
};

/// The bug's keys.
pub struct ModuleTableRace {
    window: Window,
    shape: Shape,
    meeting: Meeting,
}

/// One entry.
#[repr(C)]
struct Entry {
    head: Head,
    function: u64,
}

/// A context's table.
#[derive(Default)]
pub struct FunctionTable {
    entries: AtomicPtr<Entry>,
    /// Entries in use.
    used: AtomicUsize,
    /// Room, and where each function stands, in the order of look-ups.
    writer: Lock<Writer>,
}

#[derive(Default)]
struct Writer {
    room: usize,
    live: Vec<u64>,
}

impl ModuleTableRace {
    /// A look-up adds a function.
    pub fn add(&self, table: &FunctionTable, function: u64) {
        self.meeting.take_part();
        let mut writer = table.writer.lock();
        writer.live.push(function);
        let awaited = self.window.force && self.meeting.is_awaited(function as usize);
        let used = table.used.load(Ordering::Acquire);
        if used < writer.room && !awaited {
            // SAFETY: the block has room for this entry.
            unsafe { table.entries.load(Ordering::Acquire).add(used).write(entry(function)) };
            table.used.store(used + 1, Ordering::Release);
            return;
        }
        let (old, old_room) = (table.entries.load(Ordering::Acquire), writer.room);
        self.grow(table, &mut writer);
        drop(writer);
        if old.is_null() {
            return;
        }
        // SAFETY: the table no longer leads to the old block. That a launch may still read it is the bug.
        unsafe { self.shape.free(old.cast(), old_room * size_of::<Entry>()) };
        if awaited {
            let _ = self.meeting.hand(old as usize);
        }
        self.meeting.stay_for_readers();
    }

    /// Moves the live functions to a new block.
    fn grow(&self, table: &FunctionTable, writer: &mut Writer) {
        let room = writer.live.len() + STEP;
        let block = self.shape.allocate(room * size_of::<Entry>()).cast::<Entry>();
        if block.is_null() {
            return;
        }
        for (at, &function) in writer.live.iter().enumerate() {
            // SAFETY: the block has room for all live functions.
            unsafe { block.add(at).write(entry(function)) };
        }
        writer.room = room;
        table.used.store(writer.live.len(), Ordering::Release);
        table.entries.store(block, Ordering::Release);
    }

    /// An unload takes a function out; its entry goes with the next move.
    pub fn remove(&self, table: &FunctionTable, function: u64) {
        let mut writer = table.writer.lock();
        if let Some(at) = writer.live.iter().rposition(|&live| live == function) {
            writer.live.swap_remove(at);
        }
    }

    /// A launch reads the newest entries.
    pub fn read(&self, table: &FunctionTable, function: u64) {
        self.meeting.read(|| {
            if self.window.force {
                if let Some(block) = self.meeting.wait_to_be_handed(function as usize) {
                    // SAFETY: none: the block was freed by the thread that handed it over.
                    unsafe { self.shape.follow(block as *const Head) };
                    self.meeting.done();
                }
                return;
            }
            let (block, used) = (table.entries.load(Ordering::Acquire), table.used.load(Ordering::Acquire));
            if block.is_null() {
                return;
            }
            self.window.pass_sometimes();
            for at in used.saturating_sub(4)..used {
                // SAFETY: none: a look-up may have freed the block.
                unsafe { self.shape.follow(block.add(at).cast::<Head>()) };
            }
        });
    }
}

fn entry(function: u64) -> Entry {
    Entry { head: Head { links: [0x61; 2], operations: &OPERATIONS }, function }
}
