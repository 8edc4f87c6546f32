//! Scripted plans: an exact sequence of driver calls, legal or not, done as written.
//!
//! Names are resolved and the order of the ops is checked before any driver call, so that a script that could never end is
//! refused instead of being taken for a hang. What an op answers is compared with what the script expects; nothing else is
//! judged here.

use super::arguments::Layout;
use super::churn::Ended;
use super::crew::{Crew, Job, Kit};
use super::order_check;
use super::player::Player;
use crate::journal::ThreadWriter;
use crate::plan::{Op, OpCall, Workload};
use crate::vocabulary::Call;
use crossbeam::sync::WaitGroup;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A thread that waits for another looks this often whether time is up.
const GLANCE: Duration = Duration::from_millis(20);
/// Most bytes that one op copies.
const MOST_BYTES: u64 = 1 << 30;

/// How far an op is.
pub(super) mod state {
    pub const ENTERED: u8 = 1;
    pub const DONE: u8 = 2;
}

/// A handle or address that the script gave a name.
#[derive(Default)]
pub(super) struct Named {
    pub handle: AtomicPtr<c_void>,
    pub address: AtomicU64,
    /// Serial of the module that it is or belongs to.
    pub module: AtomicU64,
}

/// A script, ready to be done.
pub(super) struct Script<'a> {
    ops: &'a [Op],
    named: HashMap<&'a str, Named>,
    states: Box<[AtomicU8]>,
    turn: Mutex<()>,
    changed: Condvar,
}

impl<'a> Script<'a> {
    /// Checks the workload's script.
    ///
    /// # Errors
    /// In words, where an op lacks something, names a thread that is not there, or can never be reached.
    pub fn new(workload: &'a Workload, layout: &Layout) -> Result<Script<'a>, String> {
        let ops = &workload.script;
        let mut named = HashMap::new();
        for (index, op) in ops.iter().enumerate() {
            let number = index + 1;
            let wrong = |text: String| format!("op {number} ({:?}): {text}", op.call);
            if op.thread >= workload.threads {
                return Err(wrong(format!("thread {}, and there are {}", op.thread, workload.threads)));
            }
            for name in needs(op).map_err(wrong)? {
                named.entry(name).or_insert_with(Named::default);
            }
            if op.bytes.is_some_and(|bytes| bytes > MOST_BYTES) {
                return Err(wrong(format!("more than {MOST_BYTES} bytes")));
            }
            if op.call == OpCall::Verify && !layout.adds {
                return Err(wrong("what this kernel must compute is not known".into()));
            }
        }
        order_check::check(ops)?;
        let states = ops.iter().map(|_| AtomicU8::new(0)).collect();
        Ok(Script { ops, named, states, turn: Mutex::new(()), changed: Condvar::new() })
    }

    /// Says that an op has come this far.
    pub fn advance(&self, index: usize, to: u8) {
        self.states[index].store(to, Release);
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until op `number` (from 1) has reached `least`. False: time is up.
    pub fn wait_for(&self, number: usize, least: u8, crew: &Crew<'_>, pen: &mut ThreadWriter) -> bool {
        let reached = || self.states[number - 1].load(Acquire) >= least;
        if reached() {
            return true;
        }
        let open = pen.enter(Call::Wait, 0);
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while !reached() && !crew.is_over() {
            turn = self.changed.wait_timeout(turn, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(turn);
        pen.leave(open, 0);
        reached()
    }

    /// What an op's name stands for.
    pub fn find(&self, name: Option<&String>) -> &Named {
        // `new` entered every name that an op needs.
        name.and_then(|name| self.named.get(name.as_str())).expect("the script was checked")
    }
}

impl Job for Script<'_> {
    fn run(&self, crew: &Crew<'_>, index: usize, pen: &mut ThreadWriter, kit: &mut Kit, first: WaitGroup) -> Ended {
        drop(first);
        let mut player = Player::new(self, crew, index, pen, kit);
        for (number, op) in (1..).zip(self.ops).filter(|(_, op)| op.thread == index) {
            if !player.play(number, op) {
                break;
            }
        }
        if player.is_broken() { Ended::Broken } else { Ended::InTime }
    }
}

/// The names that an op uses.
///
/// # Errors
/// In words, where one that it cannot do without is not given.
fn needs(op: &Op) -> Result<Vec<&str>, String> {
    let given = |name: &'static str, value: &'_ Option<String>| match value {
        Some(_) => Ok(()),
        None => Err(format!("`{name}` is missing")),
    };
    match op.call {
        OpCall::Load | OpCall::Unload => given("module", &op.module)?,
        OpCall::GetFunction => {
            given("module", &op.module)?;
            given("function", &op.function)?;
        }
        OpCall::Launch => given("function", &op.function)?,
        OpCall::StreamCreate | OpCall::StreamSync | OpCall::StreamDestroy => given("stream", &op.stream)?,
        OpCall::CtxCreate | OpCall::CtxSetCurrent | OpCall::CtxDestroy => given("context", &op.context)?,
        OpCall::MemAlloc => given("buffer", &op.buffer)?,
        OpCall::MemFree | OpCall::CopyIn | OpCall::CopyOut if op.address.is_none() => given("buffer", &op.buffer)?,
        _ => {}
    }
    let all = [&op.module, &op.function, &op.stream, &op.context, &op.buffer];
    Ok(all.into_iter().flatten().map(String::as_str).collect())
}
