//! Leaves nothing behind: orphans come to the supervisor, and what cannot be followed is found by a mark.

use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes this process the one that orphans of its descendants are handed to.
pub(super) fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// A word in the environment of one child and all that it starts.
///
/// Looked for only where the child is not traced: then a process that left its session is found by nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(String);

const NAME: &str = "CUBIN_STRESS_TREE";

impl Mark {
    /// A word that no other tree of any supervisor has.
    pub(super) fn new() -> Mark {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Mark(format!("{}.{}.{number}", std::process::id(), now.tv_nsec))
    }

    /// The environment variable to start the child with.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (NAME.into(), self.0.as_str().into())
    }

    /// Processes that carry the mark and are not zombies of somebody else.
    pub(super) fn processes(&self) -> Vec<i32> {
        let wanted = format!("{NAME}={}", self.0).into_bytes();
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| carries(*pid, &wanted)).collect()
    }
}

fn carries(pid: i32, wanted: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| env.split(|&b| b == 0).any(|word| word == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ() {
        assert_ne!(Mark::new(), Mark::new());
    }

    #[test]
    fn a_mark_finds_only_those_that_carry_it() {
        assert_eq!(Mark::new().processes(), Vec::<i32>::new());
    }
}
