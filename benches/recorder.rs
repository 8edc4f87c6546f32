//! What the journal's recording costs a running worker: recorder on and off in alternating blocks of 1,000 rounds, in one
//! process, on the simulated driver. `cargo bench --bench recorder -- [SECONDS] [PROFILE...]`
//!
//! Each pair of neighbouring blocks gives one ratio of speeds, on : off. Printed are their median and the interval that holds
//! it with at least 95 %, by order statistics (exact for any distribution: David and Nagaraja, Order Statistics, 3rd ed.,
//! 7.1). Passes where the median is 0.97 or more and the interval lies above 0.95, for every profile; exit status 1 otherwise.

#[path = "../tests/child/mod.rs"]
mod child;

use cubin_stress::plan::{Verify, Workload};
use cubin_stress::stats::{median, median_interval};
use std::process::ExitCode;

const BLOCK: u32 = 1_000;
const LEAST_MEDIAN: f64 = 0.97;
const LEAST_LOW: f64 = 0.95;

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`; `cargo test --benches` runs this without it, and only wants to know that it starts.
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let measuring = words.iter().any(|word| word == "--bench");
    words.retain(|word| !word.starts_with("--"));
    if !measuring {
        return ExitCode::SUCCESS;
    }
    let seconds = words.first().and_then(|word| word.parse().ok());
    let profiles = if seconds.is_some() { &words[1..] } else { &words[..] };
    let seconds = seconds.unwrap_or(40.0);
    let profiles =
        if profiles.is_empty() { vec!["none", "rtx5090-guess"] } else { profiles.iter().map(String::as_str).collect() };
    let passed: Vec<bool> = profiles.iter().map(|profile| measure(profile, seconds)).collect();
    if passed.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs one worker and prints one line. True: the criterion holds.
fn measure(profile: &str, seconds: f64) -> bool {
    // One thread: two would switch at different times. No module is kept and none is checked, so that every round is alike.
    let workload = Workload { threads: 1, keep: 0, verify: Verify::Off, ..Workload::default() };
    let mut order = child::order("tile/add.sm_120.cubin", workload, seconds);
    order.alternate = Some(BLOCK);
    let left = child::run(&order, &[("CUDA_SIM_PROFILE", profile)]);
    let blocks: Vec<f64> = left
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("on ").or_else(|| line.strip_prefix("off ")))
        .filter_map(|ns| ns.parse().ok())
        .collect();
    // The first pair warms up. On, off, on, off: the time of the second over that of the first is the ratio of speeds.
    let mut ratios: Vec<f64> = blocks.chunks_exact(2).skip(1).map(|pair| pair[1] / pair[0]).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some((low, high)), Some(middle)) = (median_interval(&ratios), median(&ratios)) else {
        println!("{profile}: {} pairs in {seconds} s are too few: {}", ratios.len(), left.told());
        return false;
    };
    let mut off: Vec<f64> = blocks.chunks_exact(2).skip(1).map(|pair| pair[1]).collect();
    off.sort_by(f64::total_cmp);
    let passed = middle >= LEAST_MEDIAN && low > LEAST_LOW;
    println!(
        "{profile}: recorder on : off, median ratio {middle:.4}, 95 % interval {low:.4} to {high:.4} (order statistics), \
         {} pairs of blocks of {BLOCK} rounds, {:.2} us a round without it: {}",
        ratios.len(),
        median(&off).unwrap_or(0.0) / f64::from(BLOCK) / 1e3,
        if passed { "passed" } else { "NOT PASSED" }
    );
    passed
}
