//! Driver calls that fail: which stop the worker, which are written down, and how a loop that only fails stays cool.

use crate::driver::codes;
use crate::driver::entries::CuResult;
use crate::journal::{NoteKind, ThreadWriter};
use crate::vocabulary::Call;
use std::time::Duration;

/// A driver call that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// Which.
    pub call: Call,
    /// The driver's answer.
    pub code: i32,
    /// Serial of the module concerned, 0: none.
    pub module: u64,
}

impl Failed {
    /// Name and code: `cuModuleLoadData answered CUDA_ERROR_NO_BINARY_FOR_GPU (209)`.
    pub fn describe(&self) -> String {
        format!("{} answered {}", self.call.entry(), codes::describe(self.code))
    }
}

/// One journaled call of the driver's table.
pub(super) fn direct(
    pen: &mut ThreadWriter,
    call: Call,
    module: u64,
    step: impl FnOnce() -> CuResult,
) -> Result<(), Failed> {
    let open = pen.enter(call, module);
    let code = step();
    pen.leave(open, code);
    if code == 0 { Ok(()) } else { Err(Failed { call, code, module }) }
}

/// Why a worker cannot do its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// [`NoteKind::SetupFailed`] or [`NoteKind::BadPlan`].
    pub kind: NoteKind,
    /// The call concerned.
    pub call: Option<Call>,
    /// The driver's answer, 0 where it has no part in it.
    pub code: i32,
    /// One line, with the next step where there is one.
    pub text: String,
}

impl Failure {
    /// The plan does not fit the image.
    pub fn plan(text: impl Into<String>) -> Failure {
        Failure { kind: NoteKind::BadPlan, call: None, code: 0, text: text.into() }
    }

    /// The worker cannot begin here.
    pub fn setup(call: Option<Call>, code: i32, text: impl Into<String>) -> Failure {
        Failure { kind: NoteKind::SetupFailed, call, code, text: text.into() }
    }

    /// The worker's exit status for it.
    pub fn status(&self) -> u8 {
        if self.kind == NoteKind::BadPlan { 2 } else { 3 }
    }
}

/// One thread's memory of what failed.
pub(super) struct Trouble {
    noted: [(Call, i32); Trouble::KINDS],
    count: usize,
    in_a_row: u32,
}

impl Trouble {
    /// Kinds of failures that are told apart; more are counted in the journal and not written down.
    const KINDS: usize = 16;
    /// Failures in a row that go unpunished.
    const PATIENCE: u32 = 4;

    /// Nothing yet.
    pub fn new() -> Trouble {
        Trouble { noted: [(Call::Step, 0); Trouble::KINDS], count: 0, in_a_row: 0 }
    }

    /// Whether this is the first failure of its call and code in this thread.
    pub fn is_new(&mut self, failed: &Failed) -> bool {
        let kind = (failed.call, failed.code);
        if self.count == Trouble::KINDS || self.noted[..self.count].contains(&kind) {
            return false;
        }
        self.noted[self.count] = kind;
        self.count += 1;
        true
    }

    /// A round went well.
    #[inline]
    pub fn forget(&mut self) {
        self.in_a_row = 0;
    }

    /// How long to wait after one more failure: nothing at first, then from 1 ms to 32 ms, so that a loop in which every
    /// call fails does not spin.
    pub fn pause(&mut self) -> Duration {
        self.in_a_row = self.in_a_row.saturating_add(1);
        match self.in_a_row.saturating_sub(Trouble::PATIENCE) {
            0 => Duration::ZERO,
            n => Duration::from_millis(1 << (n - 1).min(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_failure_is_new_once() {
        let mut trouble = Trouble::new();
        let failed = |code| Failed { call: Call::Load, code, module: 1 };
        assert!(trouble.is_new(&failed(209)));
        assert!(!trouble.is_new(&Failed { module: 2, ..failed(209) }));
        assert!(trouble.is_new(&Failed { call: Call::Launch, ..failed(209) }));
        for code in 0..100 {
            trouble.is_new(&failed(code));
        }
        assert!(!trouble.is_new(&failed(1000)), "there is no room left");
    }

    #[test]
    fn only_repeated_failures_cost_time_and_never_much() {
        let mut trouble = Trouble::new();
        let pauses: Vec<_> = (0..12).map(|_| trouble.pause().as_millis()).collect();
        assert_eq!(pauses, [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 32, 32]);
        trouble.forget();
        assert_eq!(trouble.pause(), Duration::ZERO);
    }
}
