//! How often each call was made and how long the hot ones took, over all threads of a child or over many children.

use super::CallTotals;
use super::latency::{BUCKETS, HotCall, bucket_value, empty_histogram};
use super::layout::LATENCY_IN_BLOCK;
use super::notes::word;
use super::reader::{Journaled, Source};
use crate::vocabulary::Call;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::io;

/// Totals of a child, or of many merged.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Calls and errors by call.
    pub calls: BTreeMap<Call, CallTotals>,
    /// Latencies in ns of the hot calls, in the order of [`HotCall::ALL`].
    latencies: Vec<Histogram<u64>>,
    /// Rounds of the loop finished.
    pub rounds: u64,
    /// Modules kept loaded at the end.
    pub kept: u64,
    /// What could not be read or made no sense, one line each.
    pub soft_errors: Vec<String>,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            calls: BTreeMap::new(),
            latencies: HotCall::ALL.iter().map(|_| empty_histogram()).collect(),
            rounds: 0,
            kept: 0,
            soft_errors: Vec::new(),
        }
    }
}

impl Totals {
    /// Latencies of a hot call, ns.
    pub fn latency(&self, call: HotCall) -> &Histogram<u64> {
        &self.latencies[call as usize]
    }

    /// How often a hot call was made under any of its names, and with how many errors.
    pub fn of(&self, call: HotCall) -> CallTotals {
        let same = self.calls.iter().filter(|(c, _)| HotCall::of(**c) == Some(call));
        same.fold(CallTotals::default(), |mut sum, (_, totals)| {
            sum.add(totals);
            sum
        })
    }

    /// Adds another child's totals.
    pub fn merge(&mut self, other: &Totals) {
        for (call, totals) in &other.calls {
            self.calls.entry(*call).or_default().add(totals);
        }
        for (ours, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            // Both have the layout of `empty_histogram`, so this cannot fail.
            let _ = ours.add(theirs);
        }
        self.rounds = self.rounds.saturating_add(other.rounds);
        self.kept = self.kept.saturating_add(other.kept);
        self.soft_errors.extend(other.soft_errors.iter().cloned());
    }
}

impl CallTotals {
    /// Adds another's.
    pub fn add(&mut self, other: &CallTotals) {
        self.count = self.count.saturating_add(other.count);
        self.errors = self.errors.saturating_add(other.errors);
    }
}

impl<S: Source> Journaled<'_, S> {
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { soft_errors: Vec::from_iter(self.header_damage()), ..Totals::default() };
        for index in 0..self.geometry.blocks {
            if let Err(why) = self.add_thread(index, &mut totals) {
                totals.soft_errors.push(format!("journal unreadable: {}: {why}", self.name(index)));
            }
        }
        totals
    }

    fn add_thread(&self, index: usize, totals: &mut Totals) -> io::Result<()> {
        let name = self.name(index);
        let (calls, foreign) = self.counts(index)?;
        if foreign {
            totals.soft_errors.push(format!("journal unreadable in part: {name}: counters make no sense"));
        }
        let buckets = self.copy(self.geometry.block(index) + LATENCY_IN_BLOCK, HotCall::ALL.len() * BUCKETS * 8)?;
        let state = self.state(index, &self.time())?;
        for (row, call) in buckets.chunks_exact(BUCKETS * 8).zip(HotCall::ALL) {
            if !self.add_latencies(row, &mut totals.latencies[*call as usize]) {
                totals
                    .soft_errors
                    .push(format!("journal unreadable in part: {name}: latencies of {} make no sense", call.word()));
            }
        }
        for (call, count) in &calls {
            totals.calls.entry(*call).or_default().add(count);
        }
        totals.rounds = totals.rounds.saturating_add(state.rounds);
        totals.kept = totals.kept.saturating_add(state.kept);
        Ok(())
    }

    /// Adds a row of counters; answers false, and adds nothing, where they cannot be true.
    fn add_latencies(&self, row: &[u8], histogram: &mut Histogram<u64>) -> bool {
        let time = self.time();
        let sum = row.as_chunks::<8>().0.iter().fold(0u64, |sum, c| sum.saturating_add(u64::from_le_bytes(*c)));
        if !self.possible(sum, &time) {
            return false;
        }
        if sum > 0 {
            for (index, count) in (0..BUCKETS).map(|i| (i, word(row, i * 8))).filter(|(_, count)| *count > 0) {
                // Every counter's value is below the histogram's bound, so this cannot fail.
                let _ = histogram.record_n(bucket_value(index), count);
            }
        }
        true
    }
}
