//! The last calls of all threads over one stretch of time: what exposure is counted from.

use super::CallRecord;
use super::reader::{Journaled, LastCalls, Source};

/// The last calls of all threads, with those still open at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallWindow {
    /// From here on every thread's calls are here, ns.
    pub from_ns: u64,
    /// Up to here they are, ns.
    pub until_ns: u64,
    /// Calls by thread, oldest first. A call that was still open ends at the time of reading, after `until_ns`.
    pub threads: Vec<Vec<CallRecord>>,
}

impl<S: Source> Journaled<'_, S> {
    /// At most `calls` last calls of each thread. A thread that cannot be read makes the window empty.
    pub fn window(&self, calls: usize) -> CallWindow {
        let mut window = CallWindow { until_ns: self.time().now.mono_ns, ..CallWindow::default() };
        for index in 0..self.geometry.blocks {
            let Ok(LastCalls { records: mut last, before: state, .. }) = self.last_calls(index, calls) else {
                return CallWindow::default();
            };
            // Its whole history is here, unless the oldest record has a number: then its coverage begins with that.
            if let Some(oldest) = last.first().filter(|oldest| oldest.index > 0) {
                window.from_ns = window.from_ns.max(oldest.enter_ns);
            }
            let left_ns = last.last().map_or(0, |l| l.leave_ns);
            if let Some(open) = state.open.filter(|open| open.entered_ns >= left_ns) {
                last.push(CallRecord {
                    index: state.head,
                    call: open.call,
                    module: open.module,
                    enter_ns: open.entered_ns,
                    leave_ns: self.time().now.mono_ns.max(window.until_ns + 1).max(open.entered_ns),
                    result: 0,
                });
            }
            window.threads.push(last);
        }
        window
    }
}
