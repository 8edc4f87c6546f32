//! The stacks of one process at one standstill: walking, placing and naming frames.

use super::image::Image;
use super::maps::Maps;
use super::memory::Memory;
use super::modules::{self, Loaded};
use super::registers::Registers;
use super::unwind::{self, RawFrame};
use super::{ExecLog, Surroundings};
use crate::evidence::{Frame, Module};
use crate::vocabulary::Place;
use std::sync::Arc;

/// Bytes of a stack that are read in one go.
const STACK: u64 = 64 << 10;

/// What is known of a process that stands still.
pub(super) struct Stacks<'a> {
    pid: i32,
    memory: &'a Memory,
    around: &'a Surroundings,
    #[expect(dead_code, reason = "used by the next step: host objects and cores")]
    log: Option<&'a ExecLog>,
    maps: Maps,
    loaded: Vec<Loaded>,
    /// What could not be taken.
    pub soft_errors: Vec<String>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(
        pid: i32,
        through: i32,
        memory: &'a Memory,
        around: &'a Surroundings,
        log: Option<&'a ExecLog>,
    ) -> Self {
        let mut soft_errors = Vec::new();
        let maps = Maps::of(through).unwrap_or_else(|error| {
            soft_errors.push(format!("maps: {error}"));
            Maps::default()
        });
        let (loaded, more) = modules::loaded(through, &maps, memory, &around.modules);
        soft_errors.extend(more);
        Stacks { pid, memory, around, log, maps, loaded, soft_errors }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Walks one thread's stack. Also answers why the walk ended.
    pub(super) fn walk(&mut self, registers: &Registers) -> (Vec<Frame>, String) {
        let top = self.maps.find(registers.sp()).map_or(registers.sp(), |mapping| mapping.end);
        self.memory.prefetch(registers.sp(), STACK.min(top - registers.sp()));
        let (raw, end) = unwind::walk(self, registers.dwarf());
        let frames = raw.iter().map(|frame| self.frame(frame)).collect();
        (frames, end)
    }

    fn frame(&self, raw: &RawFrame) -> Frame {
        let lookup = raw.lookup();
        let module = self.module_at(lookup);
        let inside = module.map(|index| {
            let loaded = &self.loaded[index];
            let address = lookup.wrapping_sub(loaded.bias);
            let function = loaded.image.function(address);
            let symbol = loaded.image.symbol(address, function, loaded.file.as_deref());
            (raw.pc.wrapping_sub(loaded.bias), function, symbol)
        });
        let (address, function, symbol) = match inside {
            Some((address, function, symbol)) => (Some(address), function, symbol),
            None => (None, None, None),
        };
        Frame {
            pc: raw.pc,
            sp: raw.sp,
            module,
            module_address: address,
            function,
            symbol,
            place: self.place(lookup),
            found: raw.found,
            signal_frame: raw.signal_frame,
        }
    }

    fn module_at(&self, address: u64) -> Option<usize> {
        if !self.maps.is_code(address) {
            return None;
        }
        self.loaded.iter().position(|module| (module.start..module.end).contains(&address))
    }

    /// Where an address lies.
    pub(super) fn place(&self, address: u64) -> Place {
        if let Some(index) = self.module_at(address) {
            return self.around.known.place(&self.loaded[index].path);
        }
        match self.maps.find(address) {
            Some(_) => Place::Anonymous,
            None => Place::Unmapped,
        }
    }

    /// The modules as they are written down, and what could not be taken.
    pub(super) fn finish(self) -> (Vec<Module>, Vec<String>) {
        let known = &self.around.known;
        let module = |loaded: Loaded| Module {
            place: known.place(&loaded.path),
            build_id: loaded.image.build_id.clone(),
            path: loaded.path,
            bias: loaded.bias,
            start: loaded.start,
            end: loaded.end,
        };
        (self.loaded.into_iter().map(module).collect(), self.soft_errors)
    }
}

impl unwind::Process for Stacks<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        self.memory.word(address)
    }

    fn value(&self, address: u64, size: usize) -> Option<u64> {
        self.memory.value(address, size)
    }

    fn before(&self, address: u64) -> Vec<u8> {
        // A call at the very start of a mapping is shorter than the window: take what there is, the nearest bytes last.
        (1..=8u64)
            .rev()
            .map(|n| self.memory.bytes(address.wrapping_sub(n), n as usize))
            .find(|b| !b.is_empty())
            .unwrap_or_default()
    }

    fn is_code(&self, address: u64) -> bool {
        self.maps.is_code(address)
    }

    fn tables(&self, address: u64) -> Option<(Arc<Image>, u64)> {
        let module = &self.loaded[self.module_at(address)?];
        Some((Arc::clone(&module.image), module.bias))
    }
}
