//! The stacks of one process at one standstill: walking, placing and naming frames.

use super::address;
use super::host::{self, HostCode};
use super::image::Image;
use super::maps::Maps;
use super::memory::Memory;
use super::modules::{self, Loaded};
use super::registers::Registers;
use super::unwind::{self, RawFrame};
use super::{ExecLog, Surroundings};
use crate::evidence::{ExecutableMapping, Frame, Module, Trigger};
use crate::vocabulary::Place;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a stack that are read in one go.
const STACK: u64 = 64 << 10;

/// What is known of a process that stands still.
pub(super) struct Stacks<'a> {
    pid: i32,
    memory: &'a Memory,
    around: &'a Surroundings,
    log: Option<&'a ExecLog>,
    maps: Maps,
    loaded: Vec<Loaded>,
    /// Host code that was come across, as modules that stand behind those of files, with how much of it agreed.
    hosts: RefCell<Vec<(Loaded, usize)>>,
    /// What could not be taken.
    pub soft_errors: Vec<String>,
}

impl<'a> Stacks<'a> {
    /// Reads the maps and modules of `pid` by way of its thread `through`.
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
        Stacks { pid, memory, around, log, maps, loaded, hosts: RefCell::default(), soft_errors }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Walks one thread's stack. Also answers why the walk ended.
    pub(super) fn walk(&self, registers: &Registers) -> (Vec<Frame>, String) {
        let top = self.maps.find(registers.sp()).map_or(registers.sp(), |mapping| mapping.end);
        self.memory.prefetch(registers.sp(), STACK.min(top - registers.sp()));
        let (raw, end) = unwind::walk(self, registers.dwarf());
        let frames = raw.iter().map(|frame| self.frame(frame)).collect();
        (frames, end)
    }

    fn frame(&self, raw: &RawFrame) -> Frame {
        let lookup = raw.lookup();
        let module = self.module_at(lookup);
        let (address, function, symbol) = match module.map(|index| self.module(index)) {
            Some(module) => {
                let address = lookup.wrapping_sub(module.bias);
                let function = module.image.function(address);
                let symbol = module.image.symbol(address, function, module.file.as_deref());
                (Some(raw.pc.wrapping_sub(module.bias)), function, symbol)
            }
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

    fn module(&self, index: usize) -> Loaded {
        match self.loaded.get(index) {
            Some(module) => module.clone(),
            None => self.hosts.borrow()[index - self.loaded.len()].0.clone(),
        }
    }

    /// The index of the module that an address lies in: a file's, or host code that is known by its bytes.
    fn module_at(&self, address: u64) -> Option<usize> {
        let mapping = self.maps.find(address).filter(|mapping| mapping.execute)?;
        let inside = |module: &Loaded| (module.start..module.end).contains(&address);
        if let Some(index) = self.loaded.iter().position(inside) {
            return Some(index);
        }
        let behind = |index| self.loaded.len() + index;
        if let Some(index) = self.hosts.borrow().iter().position(|(module, _)| inside(module)) {
            return Some(behind(index));
        }
        let matches =
            self.around.hosts.iter().filter_map(|code| Some((code, code.find(self.memory, mapping, address)?)));
        let (code, found) = matches.max_by_key(|(_, found)| found.agreeing)?;
        let module = Loaded {
            path: host_path(code),
            file: None,
            image: code.tables(),
            bias: found.base,
            start: found.base.max(mapping.start),
            end: found.base.saturating_add(code.size()).min(mapping.end),
        };
        let mut hosts = self.hosts.borrow_mut();
        hosts.push((module, found.agreeing));
        Some(behind(hosts.len() - 1))
    }

    /// Where an address lies.
    pub(super) fn place(&self, address: u64) -> Place {
        self.place_and_note(address).0
    }

    /// Where an address lies, and how that is known where the maps alone do not say it.
    pub(super) fn place_and_note(&self, address: u64) -> (Place, Option<String>) {
        match self.module_at(address) {
            Some(index) if index < self.loaded.len() => (self.around.known.place(&self.loaded[index].path), None),
            Some(index) => {
                let (module, agreeing) = &self.hosts.borrow()[index - self.loaded.len()];
                (Place::HostObject, Some(format!("{agreeing} bytes here agree with {}", module.path)))
            }
            None => self.place_outside(address),
        }
    }

    fn place_outside(&self, address: u64) -> (Place, Option<String>) {
        if let Some(mapping) = self.maps.find(address) {
            let note = match (mapping.execute, mapping.path.as_str()) {
                (true, _) => None,
                (false, "") => Some("anonymous memory that is not executable".to_owned()),
                (false, path) => Some(format!("{path}, mapped without execution")),
            };
            return (Place::Anonymous, note);
        }
        match host::was_host_code(&self.around.hosts, self.log, address) {
            Some(note) => (Place::HostObjectUnmapped, Some(note)),
            None => (Place::Unmapped, None),
        }
    }

    /// What kind of address a fault is about.
    pub(super) fn judge_address(&self, trigger: &Trigger, registers: &Registers) -> address::Finding {
        address::judge(trigger, registers, &self.maps, self.memory, self.log)
    }

    /// Logged executable mappings that cover these addresses and are of no file that is mapped there now.
    pub(super) fn logged(&self, addresses: impl Iterator<Item = u64>) -> Vec<ExecutableMapping> {
        let Some(log) = self.log else { return Vec::new() };
        let file = |address: u64| self.module_at(address).is_some_and(|index| index < self.loaded.len());
        let covering = addresses.filter(|&address| !file(address)).filter_map(|address| log.covering(address));
        let by_start: BTreeMap<u64, ExecutableMapping> = covering.map(|mapping| (mapping.start, mapping)).collect();
        by_start.into_values().collect()
    }

    /// The modules as they are written down, and what could not be taken.
    pub(super) fn finish(self) -> (Vec<Module>, Vec<String>) {
        let known = &self.around.known;
        let module = |loaded: Loaded, place: Place| Module {
            place,
            build_id: loaded.image.build_id.clone(),
            path: loaded.path,
            bias: loaded.bias,
            start: loaded.start,
            end: loaded.end,
        };
        let files = self.loaded.into_iter().map(|loaded| {
            let place = known.place(&loaded.path);
            module(loaded, place)
        });
        let hosts = self.hosts.into_inner().into_iter().map(|(loaded, _)| module(loaded, Place::HostObject));
        (files.chain(hosts).collect(), self.soft_errors)
    }
}

fn host_path(code: &HostCode) -> String {
    format!("host code of {}", code.image_name)
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
        let windows = (1..=8u64).rev().map(|n| self.memory.bytes(address.wrapping_sub(n), n as usize));
        windows.into_iter().find(|bytes| !bytes.is_empty()).unwrap_or_default()
    }

    fn is_code(&self, address: u64) -> bool {
        self.maps.is_code(address)
    }

    fn tables(&self, address: u64) -> Option<(Arc<Image>, u64)> {
        let module = self.module(self.module_at(address)?);
        Some((module.image, module.bias))
    }
}
