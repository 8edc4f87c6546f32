//! Numbers about a run: exposure, rates with intervals, time to first fault, comparison of arms, when to stop.
//!
//! Pure: data in, data out. Each formula names its source and is checked against published values or by simulation.

mod compare;
mod deviance;
pub mod exposure;
mod first_fault;
mod median;
mod rates;
mod sampling;
mod sequential;
pub mod simulation;
mod tails;

pub use compare::{FixedComparison, RateRatio, Tally, compare};
pub use exposure::{Overlaps, Seen, ThreadCalls, count_overlaps};
pub use first_fault::{Life, MedianInterval, Step, seconds_to_first_fault, survival};
pub use median::{median, median_interval};
pub use rates::{Interval, Level, NotALevel, per_million, per_second, proportion};
pub use sampling::{Exposure, OverlapSampler};
pub use sequential::{ALIKE_WITHIN, Answer, Block, ExposedLife, SequentialTest, TEST};
