//! Watches a tree of processes: the child, its threads, and whatever they start, whichever session that is in.
//!
//! One thread starts the child, waits for it and captures it; a [`Tree`] therefore stays in the thread that made it. It
//! knows nothing of journals, plans or drivers. The state of each traced thread, and what moves it:
//!
//! ```text
//!            Made / first stop                     plain stop, handled signal, exec
//!   (new) ------------------------> Running <----------------------------------------.
//!                                   |  |  |  '---------------------------------------'
//!            fatal-looking signal   |  |  |  group stop                resumed
//!        Held(signal) <-------------'  |  '-----------> Paused --SIGCONT--> Running
//!            | deliver                 | exit event
//!            v                         v
//!         Running                 Held(exit) --let_go--> Leaving --> gone
//! ```

mod end;
mod happening;
mod standstill;

pub use happening::{Happening, SignalStop};

use super::reap;
use super::spawn::{self, Gate, Launch};
use super::trace::{self, Change};
use super::wake::Wake;
use crate::capture::process;
use crate::plan::Observe;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;

/// Signals that look fatal before anybody knows whether the program handles them.
pub const FATAL: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGSYS, libc::SIGTRAP];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Stopped at an event that waits in the queue, or that the owner of the tree was told of: the signal to go on with.
    Held(i32),
    /// Stopped because we asked.
    Interrupted,
    Paused,
    Leaving,
}

#[derive(Clone, Copy, Debug)]
struct Tracee {
    process: i32,
    state: State,
}

/// A child that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What it needs could not be made.
    #[error("could not prepare a child: {0}")]
    Prepare(#[source] io::Error),
    /// The program could not be executed.
    #[error("could not start {program}: {error}")]
    Spawn {
        /// The program's file.
        program: String,
        /// Why not.
        error: io::Error,
    },
}

/// A watched child and all that descends from it.
#[derive(Debug)]
pub struct Tree {
    root: i32,
    traced: bool,
    refused: Option<io::Error>,
    root_ended: bool,
    tracees: BTreeMap<i32, Tracee>,
    processes: BTreeSet<i32>,
    ever: BTreeSet<i32>,
    queue: VecDeque<(i32, i32)>,
    mark: reap::Mark,
    gate: Gate,
    wake: Wake,
}

impl Tree {
    /// Starts `launch` behind `gate` and begins to watch it; the child waits until [`Tree::open_gate`].
    ///
    /// Where tracing is refused the child is watched by its wait status alone, and [`Tree::refused`] says why.
    pub fn start(mut launch: Launch<'_>, gate: Gate, observe: Observe) -> Result<Tree, StartError> {
        let wake = Wake::on_child().map_err(StartError::Prepare)?;
        reap::adopt_orphans().map_err(StartError::Prepare)?;
        let mark = reap::Mark::new();
        // Whether it may be traced is known only once it is there: it carries the mark in any case.
        launch.env.push(mark.variable());
        let root = spawn::spawn(&launch)
            .map_err(|error| StartError::Spawn { program: launch.program.display().to_string(), error })?;
        let refused = match observe {
            Observe::None => None,
            Observe::Light => trace::seize(root, trace::FOLLOW_LIGHT).err(),
            Observe::Full => trace::seize(root, trace::FOLLOW_ALL).err(),
        };
        let traced = observe != Observe::None && refused.is_none();
        let mut tree = Tree {
            root,
            traced,
            refused,
            root_ended: false,
            tracees: BTreeMap::new(),
            processes: BTreeSet::from([root]),
            ever: BTreeSet::from([root]),
            queue: VecDeque::new(),
            mark,
            gate,
            wake,
        };
        if traced {
            tree.tracees.insert(root, Tracee { process: root, state: State::Running });
        }
        Ok(tree)
    }

    /// Lets the child go.
    pub fn open_gate(&self) -> io::Result<()> {
        if self.refused.is_some() { self.gate.open_untraced() } else { self.gate.open() }
    }

    /// The child's process id.
    pub fn root(&self) -> i32 {
        self.root
    }

    /// Whether it is traced.
    pub fn traced(&self) -> bool {
        self.traced
    }

    /// Why it is not traced although it should have been.
    pub fn refused(&self) -> Option<&io::Error> {
        self.refused.as_ref()
    }

    /// What to poll for reading: readable when something may have happened.
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.wake.fd()
    }

    /// The next thing that happened, without waiting. Call until it answers none each time [`Tree::poll_fd`] is readable.
    pub fn next_happening(&mut self) -> io::Result<Option<Happening>> {
        self.wake.clear();
        if !self.traced {
            return self.next_untraced();
        }
        loop {
            let (tid, status) = match self.queue.pop_front() {
                Some(waiting) => waiting,
                None => match trace::next_change() {
                    Ok(Some(change)) => change,
                    Ok(None) => return Ok(None),
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::CHILD) => return Ok(None),
                    Err(error) => return Err(error),
                },
            };
            if let Some(happening) = self.handle(tid, status) {
                return Ok(Some(happening));
            }
        }
    }

    fn next_untraced(&mut self) -> io::Result<Option<Happening>> {
        if self.root_ended {
            return Ok(None);
        }
        let Some(status) = trace::peek_end(self.root)? else { return Ok(None) };
        self.root_ended = true;
        Ok(Some(Happening::Ended { process: self.root, status }))
    }

    fn handle(&mut self, tid: i32, status: i32) -> Option<Happening> {
        let change = trace::decode(status);
        if matches!(change, Change::Exited(_) | Change::Killed(_)) {
            return self.gone(tid, status);
        }
        let fresh = !self.tracees.contains_key(&tid);
        let process = self.admit(tid);
        let started = (fresh && process == tid).then_some(Happening::Started { process });
        match change {
            Change::Signal(signal) if FATAL.contains(&signal) => {
                self.set(tid, State::Held(signal));
                Some(Happening::Signal(SignalStop::read(process, tid, signal)))
            }
            Change::Signal(signal) => {
                self.go_on(tid, signal);
                started
            }
            Change::GroupStop(signal) => {
                let first = !self.is_paused(process);
                self.set(tid, State::Paused);
                self.check(tid, trace::listen(tid));
                first.then_some(Happening::Paused { process, signal })
            }
            Change::Exiting => {
                let status = trace::event_message(tid).unwrap_or(0) as i32;
                self.set(tid, State::Held(0));
                Some(Happening::Exiting { process, tid, status })
            }
            Change::Made => self.made(tid),
            Change::Exec => {
                self.tracees.retain(|&other, tracee| tracee.process != process || other == tid);
                self.go_on(tid, 0);
                started
            }
            Change::Plain => {
                let paused = self.is_paused(process);
                self.go_on(tid, 0);
                let continued = paused && !self.is_paused(process);
                continued.then_some(Happening::Continued { process }).or(started)
            }
            Change::Exited(_) | Change::Killed(_) => None,
        }
    }

    fn gone(&mut self, tid: i32, status: i32) -> Option<Happening> {
        self.tracees.remove(&tid);
        if !self.processes.remove(&tid) {
            return None;
        }
        self.tracees.retain(|_, tracee| tracee.process != tid);
        self.root_ended |= tid == self.root;
        Some(Happening::Ended { process: tid, status })
    }

    /// A thread stands at the event of having made another thread or process.
    fn made(&mut self, tid: i32) -> Option<Happening> {
        let child = trace::event_message(tid).unwrap_or(0) as i32;
        self.go_on(tid, 0);
        if child <= 0 || self.tracees.contains_key(&child) {
            return None;
        }
        let process = self.admit(child);
        (process == child).then_some(Happening::Started { process })
    }

    /// Takes a thread into the books where it is new, and says whose it is.
    fn admit(&mut self, tid: i32) -> i32 {
        if let Some(tracee) = self.tracees.get(&tid) {
            return tracee.process;
        }
        let process = process::process_of(tid).unwrap_or(tid);
        self.tracees.insert(tid, Tracee { process, state: State::Running });
        self.processes.insert(process);
        self.ever.insert(process);
        process
    }

    fn set(&mut self, tid: i32, state: State) {
        if let Some(tracee) = self.tracees.get_mut(&tid) {
            tracee.state = state;
        }
    }

    fn go_on(&mut self, tid: i32, signal: i32) {
        self.set(tid, State::Running);
        self.check(tid, trace::resume(tid, signal));
    }

    /// A thread that a request no longer finds was killed in the meantime: its end arrives as a change.
    fn check(&mut self, tid: i32, answer: io::Result<()>) {
        if answer.is_err() {
            self.set(tid, State::Leaving);
        }
    }

    fn is_paused(&self, process: i32) -> bool {
        self.tracees.values().any(|tracee| tracee.process == process && tracee.state == State::Paused)
    }

    /// Lets a thread go on that stands at a signal or at its exit; the signal is delivered.
    pub fn deliver(&mut self, tid: i32) {
        match self.tracees.get(&tid).map(|tracee| tracee.state) {
            Some(State::Held(0)) => {
                self.set(tid, State::Leaving);
                let _ = trace::resume(tid, 0);
            }
            Some(State::Held(signal)) => self.go_on(tid, signal),
            _ => {}
        }
    }

    /// Processes of the tree that have not ended, as far as is known.
    pub fn alive(&self) -> Vec<i32> {
        if self.traced { self.processes.iter().copied().collect() } else { Vec::new() }
    }
}
