//! How a run goes, while it goes: a bar on a terminal, a line now and then elsewhere, on stderr only.

use super::text::grouped;
use crate::journal::Progress;
use crate::store::{TrialEnd, TrialRecord};
use crate::supervisor::run::Audience;
use crate::vocabulary::Call;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};

/// Seconds between two lines where there is no terminal.
const EVERY: f64 = 10.0;

/// Shows how a run goes.
#[derive(Debug)]
pub struct Live {
    bar: Option<ProgressBar>,
    lines: bool,
    jsonl: bool,
    last_line: f64,
    faults: u64,
    children: u64,
    /// Loads of the children that are gone.
    loads: u64,
}

impl Live {
    /// For a run of this many seconds; `jsonl` prints a line for each trial on stdout.
    pub fn new(quiet: bool, jsonl: bool, seconds: f64) -> Live {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !quiet).then(|| bar(seconds));
        Live { bar, lines: !quiet && !terminal, jsonl, last_line: 0.0, faults: 0, children: 0, loads: 0 }
    }

    /// Where the run stands, in one line.
    fn status(&self, elapsed: f64, arm: &str, rounds: u64) -> String {
        let total = self.loads + rounds;
        format!(
            "{elapsed:.0} s, {arm}, {} loads ({}/s), {} faults, {} children",
            grouped(total),
            grouped((total as f64 / elapsed.max(0.001)) as u64),
            self.faults,
            self.children + 1
        )
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Audience for Live {
    fn progress(&mut self, elapsed: f64, arm: &str, progress: &Progress) {
        let status = self.status(elapsed, arm, progress.rounds());
        if let Some(bar) = &self.bar {
            bar.set_position((elapsed * 10.0) as u64);
            bar.set_message(status);
        } else if self.lines && elapsed - self.last_line >= EVERY {
            self.last_line = elapsed;
            crate::say::log(format_args!("stress: {status}"));
        }
    }

    fn status_now(&mut self, elapsed: f64, arm: &str, progress: &Progress) {
        crate::say::log(format_args!("stress: {}", self.status(elapsed, arm, progress.rounds())));
    }

    fn trial(&mut self, _elapsed: f64, arm: &str, trial: &TrialRecord) {
        self.children += 1;
        self.faults += trial.faults.len() as u64;
        self.loads += trial.calls.get(&Call::Load).map_or(0, |c| c.count);
        for fault in trial.faults.iter().filter(|f| f.evidence_file.is_some() && !self.jsonl) {
            let text = format!("stress: {arm}, child {}: {}", trial.number, fault.family_name);
            match &self.bar {
                Some(bar) => bar.println(text),
                None if self.lines => crate::say::log(format_args!("{text}")),
                None => {}
            }
        }
        if self.jsonl {
            let line = serde_json::json!({
                "schema": "cubin-stress/trial/1",
                "arm": arm,
                "trial": trial.number,
                "seconds": trial.seconds,
                "lost": !matches!(trial.end, TrialEnd::Exited { .. }),
                "rounds": trial.rounds,
                "faults": trial.faults.iter().map(|f| &f.family_name).collect::<Vec<_>>(),
            });
            // A closed pipe is no reason to stop hammering.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }
}

fn bar(seconds: f64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let target = ProgressDrawTarget::stderr_with_hz(5);
    ProgressBar::with_draw_target(Some((seconds * 10.0) as u64), target).with_style(style)
}
