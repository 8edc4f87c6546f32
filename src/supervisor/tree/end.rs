//! Ending a tree: nothing of it is left, whichever session it is in.

use super::Tree;
use crate::capture::process;
use crate::supervisor::trace;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

impl Tree {
    /// Kills the child alone; its end arrives through [`Tree::next_happening`].
    pub fn kill_root(&mut self) {
        if !self.root_ended {
            trace::kill(self.root, libc::SIGKILL);
        }
        if self.traced {
            for tid in self.standing(self.root) {
                self.go_on(tid, 0);
            }
        }
    }

    /// Kills and reaps everything that is left, within `limit`. Answers what could not be ended, one line each.
    pub fn finish(mut self, limit: Duration) -> Vec<String> {
        let until = Instant::now() + limit;
        let left = if self.traced { self.end_traced(until) } else { self.end_untraced(until) };
        for &process in &self.ever {
            let _ = trace::reap(process);
        }
        left.into_iter().map(|pid| format!("process {pid} could not be killed within {limit:?}")).collect()
    }

    fn end_traced(&mut self, until: Instant) -> Vec<i32> {
        let mut killed = BTreeSet::new();
        while !self.processes.is_empty() {
            for &process in &self.processes {
                if killed.insert(process) {
                    trace::kill(process, libc::SIGKILL);
                }
            }
            let stopped: Vec<i32> = self.processes.iter().flat_map(|&process| self.standing(process)).collect();
            for tid in stopped {
                if self.queue.iter().all(|&(waiting, _)| waiting != tid) {
                    self.go_on(tid, 0);
                }
            }
            match self.next_happening() {
                Ok(Some(_)) => {}
                Ok(None) if self.nothing_left() => break,
                _ if Instant::now() >= until => return self.processes.iter().copied().collect(),
                _ => self.wake.wait(Duration::from_millis(5)),
            }
        }
        Vec::new()
    }

    /// Whether the kernel knows no tracee of this thread any more, whatever the books say.
    fn nothing_left(&self) -> bool {
        self.processes.iter().all(|&process| !process::exists(process))
    }

    fn end_untraced(&mut self, until: Instant) -> Vec<i32> {
        loop {
            self.ever.extend(self.mark.processes());
            let left: Vec<i32> = self.ever.iter().copied().filter(|&pid| process::exists(pid)).collect();
            if left.is_empty() || Instant::now() >= until {
                return left;
            }
            for pid in left {
                trace::kill(pid, libc::SIGKILL);
                let _ = trace::reap(pid);
            }
            self.wake.wait(Duration::from_millis(1));
        }
    }
}
