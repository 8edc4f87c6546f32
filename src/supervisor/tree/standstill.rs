//! Bringing all threads of one process to a standstill, and letting them go again.

use super::{FATAL, SignalStop, State, Tracee, Tree};
use crate::capture::process;
use crate::supervisor::trace::{self, Change};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

impl Tree {
    /// Stops every thread of a process, within `limit`. Answers what stood in the way, one line each.
    ///
    /// Events that arrive meanwhile are kept for [`Tree::next_happening`]; their threads stand still too.
    pub fn stop(&mut self, process: i32, limit: Duration) -> Vec<String> {
        if !self.traced {
            return vec!["the process is not traced: its threads were not stopped".to_owned()];
        }
        let begun = Instant::now();
        let mut asked = BTreeSet::new();
        loop {
            let fresh: Vec<i32> = process::threads_of(process).into_iter().filter(|tid| asked.insert(*tid)).collect();
            for &tid in &fresh {
                self.tracees.entry(tid).or_insert(Tracee { process, state: State::Running });
                if self.moves(tid) && trace::interrupt(tid).is_err() {
                    self.set(tid, State::Leaving);
                }
            }
            if fresh.is_empty() {
                return Vec::new();
            }
            while asked.iter().any(|&tid| self.moves(tid)) {
                if self.absorb(process) {
                    continue;
                }
                self.wake.wait(Duration::from_millis(1));
                if begun.elapsed() > Duration::from_millis(20) {
                    self.set_zombies_aside(process, &asked);
                }
                if begun.elapsed() > limit {
                    let late = asked.iter().filter(|&&tid| self.moves(tid));
                    return late.map(|tid| format!("thread {tid} did not stop within {limit:?}")).collect();
                }
            }
        }
    }

    /// Whether a thread stands neither at a stop nor at its end.
    fn moves(&self, tid: i32) -> bool {
        self.tracees.get(&tid).is_some_and(|tracee| matches!(tracee.state, State::Running | State::Paused))
    }

    /// A leader that ended before its threads stays a zombie and never stops.
    fn set_zombies_aside(&mut self, process: i32, asked: &BTreeSet<i32>) {
        for &tid in asked {
            if self.moves(tid) && process::is_zombie(process, tid) {
                self.set(tid, State::Leaving);
            }
        }
    }

    /// Takes the changes that have arrived, without resuming anything of `process`. Answers whether there were any.
    fn absorb(&mut self, process: i32) -> bool {
        let mut any = false;
        self.wake.clear();
        while let Ok(Some((tid, status))) = trace::next_change() {
            any = true;
            let change = trace::decode(status);
            if matches!(change, Change::Exited(_) | Change::Killed(_)) {
                self.set(tid, State::Leaving);
                self.queue.push_back((tid, status));
                continue;
            }
            let ours = self.admit(tid) == process;
            let state = match change {
                Change::Plain if ours => State::Interrupted,
                Change::Signal(signal) => State::Held(signal),
                _ => State::Held(0),
            };
            self.set(tid, state);
            if state != State::Interrupted {
                self.queue.push_back((tid, status));
            }
        }
        any
    }

    /// Fatal-looking signals that other threads of a stopped process stand at, as `Happening::Signal` will tell them.
    pub fn waiting_signals(&self, process: i32) -> Vec<SignalStop> {
        let signals = self.queue.iter().filter_map(|&(tid, status)| match trace::decode(status) {
            Change::Signal(signal) if FATAL.contains(&signal) => Some((tid, signal)),
            _ => None,
        });
        let ours = signals.filter(|(tid, _)| self.tracees.get(tid).is_some_and(|tracee| tracee.process == process));
        ours.map(|(tid, signal)| SignalStop::read(process, tid, signal)).collect()
    }

    /// Threads of a process that stand still and can be read.
    pub fn standing(&self, process: i32) -> Vec<i32> {
        let stands = |tracee: &Tracee| matches!(tracee.state, State::Held(_) | State::Interrupted);
        let of_process = self.tracees.iter().filter(|(_, tracee)| tracee.process == process && stands(tracee));
        of_process.map(|(&tid, _)| tid).collect()
    }

    /// Lets the threads go on that [`Tree::stop`] interrupted. Those that stand at an event wait for [`Tree::next_happening`].
    pub fn resume(&mut self, process: i32) {
        for tid in self.standing(process) {
            if self.tracees[&tid].state == State::Interrupted {
                self.go_on(tid, 0);
            }
        }
    }
}
