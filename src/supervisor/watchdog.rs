//! When a child counts as hung, by what its journal says. Pure: progress in, finding out.
//!
//! Time during which the child was stopped by a stop signal counts for nothing: that is its own visible state.

use crate::journal::{InFlight, Progress};
use crate::vocabulary::{Call, Phase};

/// How patient to be, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A call that is open for this long is a hang.
    pub hang_after_ns: u64,
    /// The loop must begin within this time; calls before it may take as long.
    pub begin_within_ns: u64,
    /// The child must be gone after this time.
    pub deadline_ns: u64,
}

/// What is wrong with a child that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A call of this thread does not return.
    CallOpen {
        /// Its thread id.
        tid: i32,
        /// For how long, ns.
        open_ns: u64,
    },
    /// The loop did not begin in time.
    NeverBegan {
        /// For how long, ns.
        open_ns: u64,
    },
    /// No thread finished anything, and none is in a call.
    Still {
        /// For how long, ns.
        open_ns: u64,
    },
    /// It outlived its deadline.
    Overdue {
        /// Its age, ns.
        open_ns: u64,
    },
}

/// Looks at progress again and again.
#[derive(Debug)]
pub struct Watchdog {
    patience: Patience,
    started_ns: u64,
    began: bool,
    /// Nothing counts before this: start, or the last time that the child was continued.
    counts_from_ns: u64,
    work: u64,
    worked_ns: u64,
}

impl Watchdog {
    /// For a child whose gate was opened at `now_ns`.
    pub fn new(patience: Patience, now_ns: u64) -> Watchdog {
        Watchdog { patience, started_ns: now_ns, began: false, counts_from_ns: now_ns, work: 0, worked_ns: now_ns }
    }

    /// The child was stopped until `now_ns`.
    pub fn was_paused(&mut self, now_ns: u64) {
        self.counts_from_ns = now_ns;
        self.worked_ns = now_ns;
    }

    /// What is wrong at this moment, if anything is.
    pub fn look(&mut self, progress: &Progress) -> Option<Finding> {
        let now = progress.read_ns;
        self.began |= progress.began_ns.is_some();
        let work = progress.calls().wrapping_add(progress.rounds());
        if work != self.work {
            (self.work, self.worked_ns) = (work, now);
        }
        let age = now.saturating_sub(self.started_ns);
        if age >= self.patience.deadline_ns {
            return Some(Finding::Overdue { open_ns: age });
        }
        self.open_call(progress, now).or_else(|| self.without_call(progress, now))
    }

    fn open_call(&self, progress: &Progress, now: u64) -> Option<Finding> {
        let open = progress.threads.iter().filter_map(|thread| Some((thread.tid, thread.open?)));
        // A script that waits does what it was told to, for as long as it was told.
        let open = open.filter(|(_, call)| call.call != Call::Wait);
        let aged = open.map(|(tid, call)| (tid, call, now.saturating_sub(call.entered_ns.max(self.counts_from_ns))));
        let late = aged.filter(|(_, call, age)| *age >= self.limit(call));
        late.max_by_key(|(_, _, age)| *age).map(|(tid, _, open_ns)| Finding::CallOpen { tid, open_ns })
    }

    fn limit(&self, call: &InFlight) -> u64 {
        match call.call.phase() {
            Phase::Startup if !self.began => self.patience.begin_within_ns,
            _ => self.patience.hang_after_ns,
        }
    }

    fn without_call(&self, progress: &Progress, now: u64) -> Option<Finding> {
        let open_ns = now.saturating_sub(self.worked_ns.max(self.counts_from_ns));
        match self.began {
            false => (open_ns >= self.patience.begin_within_ns).then_some(Finding::NeverBegan { open_ns }),
            // A thread that is in a call is judged by that call.
            true if progress.threads.iter().any(|thread| thread.open.is_some()) => None,
            true => (open_ns >= self.patience.hang_after_ns).then_some(Finding::Still { open_ns }),
        }
    }
}

impl Finding {
    /// For how long it has been so, ns.
    pub fn open_ns(&self) -> u64 {
        match *self {
            Finding::CallOpen { open_ns, .. }
            | Finding::NeverBegan { open_ns }
            | Finding::Still { open_ns }
            | Finding::Overdue { open_ns } => open_ns,
        }
    }

    /// The thread that it is about.
    pub fn tid(&self) -> Option<i32> {
        match *self {
            Finding::CallOpen { tid, .. } => Some(tid).filter(|&tid| tid > 0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::ThreadProgress;

    const PATIENCE: Patience = Patience { hang_after_ns: 100, begin_within_ns: 300, deadline_ns: 10_000 };

    fn progress(read_ns: u64, began: bool, calls: u64, open: Option<(Call, u64)>) -> Progress {
        let open = open.map(|(call, entered_ns)| InFlight { call, module: 1, entered_ns });
        let busy = ThreadProgress { tid: 7, calls, rounds: 0, open };
        let threads = vec![ThreadProgress::default(), busy];
        Progress { read_ns, began_ns: began.then_some(1), finished: false, threads }
    }

    #[test]
    fn an_open_call_is_a_hang_after_its_time_and_not_before() {
        let mut dog = Watchdog::new(PATIENCE, 1000);
        assert_eq!(dog.look(&progress(1199, true, 5, Some((Call::Sync, 1100)))), None);
        let found = dog.look(&progress(1200, true, 5, Some((Call::Sync, 1100))));
        assert_eq!(found, Some(Finding::CallOpen { tid: 7, open_ns: 100 }));
    }

    #[test]
    fn a_script_may_wait_for_as_long_as_it_likes() {
        let mut dog = Watchdog::new(PATIENCE, 1000);
        assert_eq!(dog.look(&progress(9000, true, 5, Some((Call::Wait, 1100)))), None);
    }

    #[test]
    fn starting_up_may_take_longer() {
        let mut dog = Watchdog::new(PATIENCE, 1000);
        assert_eq!(dog.look(&progress(1250, false, 0, Some((Call::Init, 1010)))), None);
        assert_eq!(dog.look(&progress(1299, false, 0, None)), None);
        assert_eq!(dog.look(&progress(1300, false, 0, None)), Some(Finding::NeverBegan { open_ns: 300 }));
        let found = dog.look(&progress(1310, false, 0, Some((Call::Init, 1010))));
        assert_eq!(found, Some(Finding::CallOpen { tid: 7, open_ns: 300 }));
    }

    #[test]
    fn time_spent_stopped_does_not_count() {
        let mut dog = Watchdog::new(PATIENCE, 1000);
        dog.was_paused(1500);
        assert_eq!(dog.look(&progress(1550, true, 5, Some((Call::Launch, 1010)))), None);
        assert!(dog.look(&progress(1600, true, 5, Some((Call::Launch, 1010)))).is_some());
    }

    #[test]
    fn standing_still_outside_calls_is_a_hang_and_work_is_not() {
        let mut dog = Watchdog::new(PATIENCE, 1000);
        assert_eq!(dog.look(&progress(1050, true, 5, None)), None);
        assert_eq!(dog.look(&progress(1140, true, 6, None)), None);
        assert_eq!(dog.look(&progress(1239, true, 6, None)), None);
        assert_eq!(dog.look(&progress(1240, true, 6, None)), Some(Finding::Still { open_ns: 100 }));
    }

    #[test]
    fn a_deadline_ends_even_a_busy_child() {
        let mut dog = Watchdog::new(PATIENCE, 1000);
        let found = dog.look(&progress(11_000, true, 1 << 40, None));
        assert_eq!(found, Some(Finding::Overdue { open_ns: 10_000 }));
    }
}
