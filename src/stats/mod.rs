//! Numbers about a run: exposure, rates with intervals, time to first fault, comparison of arms, when to stop.
//!
//! Pure: data in, data out. Each formula names its source and is checked against published values or by simulation.

pub mod exposure;
mod median;
mod sampling;

pub use exposure::{Overlaps, Seen, ThreadCalls, count_overlaps};
pub use median::{median, median_interval};
pub use sampling::{Exposure, OverlapSampler};
