//! Latencies as an HdrHistogram interval log: one interval a child and call, tagged `ARM.call`.
//!
//! Opens in HdrHistogram's own tools and in its plotters. Times in ns; the column of maxima in ms, as these tools expect.

use crate::journal::{HotCall, empty_histogram};
use crate::store::{RunData, TrialRecord};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// ns in the unit of the log's column of maxima.
const NS_A_MILLISECOND: f64 = 1e6;

/// Writes the log of a run.
///
/// # Errors
/// What the writer answered.
pub fn hlog(run: &RunData, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let start =
        crate::host::since_1970(&run.header.started).map_or(SystemTime::UNIX_EPOCH, |s| SystemTime::UNIX_EPOCH + s);
    let mut out = out;
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!("Latencies of driver calls in ns, run {}", one_line(&run.header.run_id)))
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NS_A_MILLISECOND)
        .begin_log_with(&mut out, &mut serializer)?;
    for trial in &run.trials {
        let arm = run.header.plan.arms.get(trial.arm).map_or("", |arm| arm.name.as_str());
        for &call in HotCall::ALL {
            let histogram = latencies(trial, call);
            if histogram.is_empty() {
                continue;
            }
            let tag = tag(arm, call);
            log.write_histogram(&histogram, seconds(trial.at), seconds(trial.seconds), Tag::new(&tag)).map_err(
                |error| match error {
                    IntervalLogWriterError::IoError(error) => error,
                    IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
                },
            )?;
        }
    }
    Ok(())
}

/// A trial's latencies of a hot call, under all its names.
fn latencies(trial: &TrialRecord, call: HotCall) -> Histogram<u64> {
    let mut histogram = empty_histogram();
    for (_, stats) in trial.calls.iter().filter(|(name, _)| HotCall::of(**name) == Some(call)) {
        for &(value, count) in &stats.buckets {
            // A file that does not come from a histogram of this layout loses what does not fit.
            let _ = histogram.record_n(value, count);
        }
    }
    histogram
}

/// A tag may hold neither comma, space nor line end.
fn tag(arm: &str, call: HotCall) -> String {
    let fits = |c: char| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c };
    format!("{}.{}", arm.chars().map(fits).collect::<String>(), call.word())
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{header, trial};
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn run() -> RunData {
        let mut header = header();
        header.plan.arms[0].name = "tile, 13.2".into();
        RunData { header, trials: vec![trial(0), trial(1)], end: None, soft_errors: vec![] }
    }

    #[test]
    fn the_crates_own_reader_reads_it() {
        let mut bytes = Vec::new();
        hlog(&run(), &mut bytes).unwrap();
        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            let LogEntry::Interval(interval) = entry.expect("a line of the log") else { continue };
            use base64::Engine as _;
            let encoded = base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut encoded.as_slice()).unwrap();
            assert_eq!(histogram.len(), 1_000);
            assert_eq!(histogram.value_at_quantile(0.5), empty_histogram().highest_equivalent(1_000));
            assert_eq!(interval.duration(), Duration::from_secs(1));
            tags.push((interval.tag().unwrap().as_str().to_owned(), interval.start_timestamp().as_secs()));
        }
        let tag = |call: &str, at| (format!("tile__13.2.{call}"), at);
        assert_eq!(tags, [tag("load", 0), tag("launch", 0), tag("load", 1), tag("launch", 1)]);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("#[StartTime: 1767225600"), "{text}");
    }

    #[test]
    fn records_from_elsewhere_do_not_stop_it() {
        let mut run = run();
        run.trials[0].at = f64::NAN;
        run.trials[0].seconds = -1.0;
        run.trials[1].calls.values_mut().for_each(|c| c.buckets = vec![(u64::MAX, 1)]);
        run.header.started = "yesterday".into();
        let mut bytes = Vec::new();
        hlog(&run, &mut bytes).unwrap();
        assert_eq!(IntervalLogIterator::new(&bytes).filter(|e| matches!(e, Ok(LogEntry::Interval(_)))).count(), 2);
    }
}
