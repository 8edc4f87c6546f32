//! What can happen in a tree of processes.

use crate::supervisor::trace;

/// A thread that stands at a fatal-looking signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalStop {
    /// Its process.
    pub process: i32,
    /// The thread.
    pub tid: i32,
    /// Signal number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr` where the kernel knows it.
    pub address: Option<u64>,
    /// Who sent it, if anybody did.
    pub sender: Option<i32>,
}

impl SignalStop {
    pub(super) fn read(process: i32, tid: i32, signal: i32) -> SignalStop {
        let info = trace::signal_info(tid).unwrap_or_default();
        SignalStop { process, tid, signal, code: info.code, address: info.address, sender: info.sender }
    }
}

/// What happened in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A fatal-looking signal is about to be delivered to a thread, which stands still until `Tree::deliver`.
    Signal(SignalStop),
    /// A thread is about to exit, and stands still until `Tree::deliver`.
    Exiting {
        /// Its process.
        process: i32,
        /// The thread.
        tid: i32,
        /// Wait status that it exits with.
        status: i32,
    },
    /// A process was stopped by a stop signal and stays so.
    Paused {
        /// The process.
        process: i32,
        /// The stop signal.
        signal: i32,
    },
    /// A stopped process was continued.
    Continued {
        /// The process.
        process: i32,
    },
    /// A process of the tree started another.
    Started {
        /// The new process.
        process: i32,
    },
    /// A process ended.
    Ended {
        /// The process.
        process: i32,
        /// Its wait status.
        status: i32,
    },
}
