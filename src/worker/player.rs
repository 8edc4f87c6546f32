//! One thread's part of a script: each op as one journaled driver call, exactly as written.

use super::arguments::Arguments;
use super::crew::{Crew, Kit};
use super::script::{Script, state};
use super::trouble::{Failed, Trouble};
use crate::driver::codes;
use crate::journal::{NoteKind, ThreadWriter};
use crate::plan::{Expect, Op, OpCall};
use crate::vocabulary::Call;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One thread's part.
pub(super) struct Player<'a> {
    script: &'a Script<'a>,
    crew: &'a Crew<'a>,
    index: usize,
    pen: &'a mut ThreadWriter,
    kit: &'a mut Kit,
    trouble: Trouble,
    sticky: bool,
}

impl<'a> Player<'a> {
    /// The part of thread `index`.
    pub fn new(
        script: &'a Script<'a>,
        crew: &'a Crew<'a>,
        index: usize,
        pen: &'a mut ThreadWriter,
        kit: &'a mut Kit,
    ) -> Player<'a> {
        Player { script, crew, index, pen, kit, trouble: Trouble::new(), sticky: false }
    }

    /// Whether the driver gave an answer that nothing comes back from.
    pub fn is_broken(&self) -> bool {
        self.sticky
    }

    /// Waits for its turn and does one op. False: time is up.
    pub fn play(&mut self, number: usize, op: &Op) -> bool {
        let waits = [(op.after, state::DONE), (op.after_entered, state::ENTERED)];
        for (other, least) in waits {
            if let Some(other) = other
                && !self.script.wait_for(other, least, self.crew, self.pen)
            {
                return false;
            }
        }
        if self.crew.is_over() {
            return false;
        }
        let (call, module, code) = self.act(number, op);
        let Expect::Code(expected) = op.expect.unwrap_or(Expect::Code(0));
        if code != expected {
            self.unexpected(Failed { call, code, module }, expected);
        }
        self.sticky |= codes::is_sticky(code);
        self.script.advance(number - 1, state::DONE);
        self.pen.round_done();
        true
    }

    fn unexpected(&mut self, failed: Failed, expected: i32) {
        if !self.trouble.is_new(&failed) {
            return;
        }
        let (_, live) = self.crew.modules();
        let wanted =
            if expected == 0 { String::new() } else { format!(", the plan expects {}", codes::describe(expected)) };
        let text = self.crew.describe(&failed) + &wanted;
        let Failed { call, code, module } = failed;
        self.crew.journal.note(NoteKind::ApiError, Some(self.index), Some(call), code, module, live, &text);
    }

    /// One journaled call; the op counts as entered from just before it on.
    fn call(&mut self, number: usize, call: Call, module: u64, step: impl FnOnce() -> i32) -> (Call, u64, i32) {
        let open = self.pen.enter(call, module);
        self.script.advance(number - 1, state::ENTERED);
        let code = step();
        self.pen.leave(open, code);
        (call, module, code)
    }

    fn act(&mut self, number: usize, op: &Op) -> (Call, u64, i32) {
        match op.call {
            OpCall::Load | OpCall::GetFunction | OpCall::Unload => self.module_op(number, op),
            OpCall::Launch => self.launch(number, op),
            OpCall::CopyIn | OpCall::CopyOut | OpCall::MemAlloc | OpCall::MemFree => self.memory_op(number, op),
            OpCall::Verify => self.verify(number),
            OpCall::Sleep => {
                let time = Duration::from_millis(op.millis.unwrap_or(0));
                self.call(number, Call::Wait, 0, || {
                    std::thread::sleep(time);
                    0
                })
            }
            _ => self.other_op(number, op),
        }
    }

    fn module_op(&mut self, number: usize, op: &Op) -> (Call, u64, i32) {
        let entries = self.crew.stage.entries;
        let module = self.script.find(op.module.as_ref());
        let handle = module.handle.load(Relaxed);
        let serial = module.module.load(Relaxed);
        let tally = &self.crew.tallies[self.index];
        match op.call {
            OpCall::Load => {
                let (serial, image) = (number as u64, self.crew.image.as_ptr());
                let mut handle = null_mut();
                // SAFETY: the image's bytes live as long as the crew, and a zero byte stands behind them.
                let done =
                    self.call(number, Call::Load, serial, || unsafe { (entries.cuModuleLoadData)(&mut handle, image) });
                module.module.store(serial, Relaxed);
                module.handle.store(handle, Relaxed);
                if done.2 == 0 {
                    tally.loads.fetch_add(1, Relaxed);
                    tally.live.fetch_add(1, Relaxed);
                }
                done
            }
            OpCall::GetFunction => {
                let function = self.script.find(op.function.as_ref());
                let (mut found, name) = (null_mut(), self.crew.target.kernel.as_ptr());
                // SAFETY: the name ends in NUL; whether the module is loaded is the script's own affair.
                let step = || unsafe { (entries.cuModuleGetFunction)(&mut found, handle, name) };
                let done = self.call(number, Call::GetFunction, serial, step);
                function.handle.store(found, Relaxed);
                function.module.store(serial, Relaxed);
                done
            }
            _ => {
                // SAFETY: whether the module is loaded is the script's own affair.
                let done = self.call(number, Call::Unload, serial, || unsafe { (entries.cuModuleUnload)(handle) });
                if done.2 == 0 {
                    // Another thread may have loaded it: only the sum of all tallies has a meaning.
                    tally.live.fetch_sub(1, Relaxed);
                }
                done
            }
        }
    }

    fn launch(&mut self, number: usize, op: &Op) -> (Call, u64, i32) {
        let entries = self.crew.stage.entries;
        let function = self.script.find(op.function.as_ref());
        let (handle, serial) = (function.handle.load(Relaxed), function.module.load(Relaxed));
        let stream = op.stream.as_ref().map_or(null_mut(), |_| self.stream(op));
        let arguments = self.arguments(op).as_mut_ptr();
        let (grid, block) = (self.crew.target.grid, self.crew.target.block);
        // SAFETY: the arguments are laid out as the image says; whether function and stream are alive is the script's own
        // affair.
        self.call(number, Call::Launch, serial, || unsafe {
            (entries.cuLaunchKernel)(
                handle,
                grid.0,
                grid.1,
                grid.2,
                block.0,
                block.1,
                block.2,
                0,
                stream,
                arguments,
                null_mut(),
            )
        })
    }

    /// The thread's arguments; with the script's own address or buffer in the place of the last array.
    fn arguments(&self, op: &Op) -> Arguments {
        let layout = &self.crew.target.layout;
        let named = op.buffer.as_ref().map(|_| self.script.find(op.buffer.as_ref()).address.load(Relaxed));
        let (Some(address), Some(last)) = (op.address.or(named), layout.buffers.len().checked_sub(1)) else {
            return self.kit.arguments;
        };
        let mut addresses = self.kit.buffers.addresses();
        addresses[last] = address;
        layout.bind(&addresses)
    }

    fn stream(&self, op: &Op) -> *mut c_void {
        self.script.find(op.stream.as_ref()).handle.load(Relaxed)
    }

    fn memory_op(&mut self, number: usize, op: &Op) -> (Call, u64, i32) {
        let entries = self.crew.stage.entries;
        let bytes = op.bytes.unwrap_or(0) as usize;
        let named = op.buffer.as_ref().map(|_| self.script.find(op.buffer.as_ref()));
        let address = op.address.or_else(|| named.map(|named| named.address.load(Relaxed))).unwrap_or(0);
        let mut host = vec![0u8; if matches!(op.call, OpCall::CopyIn | OpCall::CopyOut) { bytes } else { 0 }];
        match op.call {
            OpCall::MemAlloc => {
                let mut fresh = 0;
                // SAFETY: the pointer is valid for one address.
                let done =
                    self.call(number, Call::MemAlloc, 0, || unsafe { (entries.cuMemAlloc_v2)(&mut fresh, bytes) });
                if let Some(named) = named {
                    named.address.store(fresh, Relaxed);
                }
                done
            }
            // SAFETY: whether the address is allocated is the script's own affair.
            OpCall::MemFree => self.call(number, Call::MemFree, 0, || unsafe { (entries.cuMemFree_v2)(address) }),
            // SAFETY: the host side holds that many bytes; the device side is the script's own affair.
            OpCall::CopyIn => self.call(number, Call::MemcpyHtoD, 0, || unsafe {
                (entries.cuMemcpyHtoD_v2)(address, host.as_ptr().cast(), bytes)
            }),
            // SAFETY: as above.
            _ => self.call(number, Call::MemcpyDtoH, 0, || unsafe {
                (entries.cuMemcpyDtoH_v2)(host.as_mut_ptr().cast(), address, bytes)
            }),
        }
    }

    fn verify(&mut self, number: usize) -> (Call, u64, i32) {
        self.script.advance(number - 1, state::ENTERED);
        let Some(checker) = &mut self.kit.checker else { return (Call::Verify, 0, 0) };
        match checker.look(0, self.crew.stage.entries, self.pen) {
            Ok(None) => (Call::Verify, 0, 0),
            Err(failed) => (failed.call, failed.module, failed.code),
            Ok(Some(wrong)) => {
                let (_, live) = self.crew.modules();
                let (thread, call) = (Some(self.index), Some(Call::Launch));
                self.crew.journal.note(NoteKind::WrongResult, thread, call, 0, 0, live, &wrong.describe());
                (Call::Verify, 0, 0)
            }
        }
    }

    fn other_op(&mut self, number: usize, op: &Op) -> (Call, u64, i32) {
        let entries = self.crew.stage.entries;
        let script = self.script;
        let of = |name: &Option<String>| script.find(name.as_ref()).handle.load(Relaxed);
        // SAFETY (for each call below): out pointers are valid for one handle; whether handles and addresses that go in are
        // alive is the script's own affair.
        match op.call {
            OpCall::StreamCreate => {
                let mut fresh = null_mut();
                // SAFETY: as above.
                let step = || unsafe { (entries.cuStreamCreate)(&mut fresh, 0) };
                let done = self.call(number, Call::StreamCreate, 0, step);
                script.find(op.stream.as_ref()).handle.store(fresh, Relaxed);
                done
            }
            OpCall::CtxCreate => {
                let (mut fresh, device) = (null_mut(), self.crew.stage.device.as_raw());
                // SAFETY: as above.
                let step = || unsafe { (entries.cuCtxCreate_v2)(&mut fresh, 0, device) };
                let done = self.call(number, Call::CtxCreate, 0, step);
                script.find(op.context.as_ref()).handle.store(fresh, Relaxed);
                done
            }
            OpCall::StreamSync => {
                let stream = of(&op.stream);
                // SAFETY: as above.
                self.call(number, Call::StreamSync, 0, || unsafe { (entries.cuStreamSynchronize)(stream) })
            }
            OpCall::StreamDestroy => {
                let stream = of(&op.stream);
                // SAFETY: as above.
                self.call(number, Call::StreamDestroy, 0, || unsafe { (entries.cuStreamDestroy_v2)(stream) })
            }
            OpCall::CtxSetCurrent => {
                let context = of(&op.context);
                // SAFETY: as above.
                self.call(number, Call::CtxSetCurrent, 0, || unsafe { (entries.cuCtxSetCurrent)(context) })
            }
            OpCall::CtxDestroy => {
                let context = of(&op.context);
                // SAFETY: as above.
                self.call(number, Call::CtxDestroy, 0, || unsafe { (entries.cuCtxDestroy_v2)(context) })
            }
            OpCall::GetErrorString => {
                let (code, mut own) = (op.value.unwrap_or(0) as i32, std::ptr::null());
                let out = op.address.map_or(&raw mut own, |address| std::ptr::without_provenance_mut(address as usize));
                // SAFETY: as above; an address of the script's own is written through by the driver, which is its point.
                self.call(number, Call::GetErrorString, 0, || unsafe { (entries.cuGetErrorString)(code, out) })
            }
            // SAFETY: as above.
            _ => self.call(number, Call::Sync, 0, || unsafe { (entries.cuCtxSynchronize)() }),
        }
    }
}
