//! Prints what the statistics promise and what 10,000 simulated experiments a cell found. Ends with 1 if a promise is broken.
//!
//! `cargo run --release --example statistics [EXPERIMENTS]`

use cubin_stress::stats::simulation::table;
use std::process::ExitCode;

fn main() -> ExitCode {
    let experiments = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let rows = table(experiments);
    for row in &rows {
        println!("{row}");
    }
    let broken = rows.iter().filter(|row| !row.holds()).count();
    println!("{} promises, {broken} broken; {experiments} experiments each", rows.len());
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
