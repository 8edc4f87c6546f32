//! The summary as text for people. Not a stable format: programs read JSON.

use super::summary::{Arm, Family, Fault, Interval, Summary};
use crate::plan::DriverKind;
use std::fmt::Write;
use std::path::Path;

/// The summary as text.
pub fn text(summary: &Summary, folder: Option<&Path>) -> String {
    let mut out = String::new();
    head(&mut out, summary);
    for arm in &summary.arms {
        arm_text(&mut out, arm);
    }
    for family in &summary.families {
        family_text(&mut out, family, summary);
    }
    comparison_text(&mut out, summary);
    verdict_text(&mut out, summary);
    for warning in &summary.warnings {
        line(&mut out, format_args!("warning: {warning}"));
    }
    line(&mut out, format_args!(""));
    line(&mut out, format_args!("again    {}", again(summary)));
    if let Some(folder) = folder {
        line(&mut out, format_args!("results  {}", folder.display()));
    }
    out
}

fn line(out: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{args}");
}

fn head(out: &mut String, s: &Summary) {
    let version = s.driver.version.as_deref().unwrap_or("of unknown version");
    let device = s.driver.device.as_ref().map_or_else(String::new, |d| format!(", {} ({})", d.name, d.arch));
    match s.driver.kind {
        DriverKind::Simulated => {
            line(
                out,
                format_args!("SIMULATED driver {version}{device}: nothing below is a finding about NVIDIA's software"),
            );
            if let Some(bug) = &s.driver.bug {
                line(out, format_args!("planted bug: {bug}"));
            }
        }
        DriverKind::Real => line(out, format_args!("driver {version}{device}, {}", s.driver.path.display())),
    }
    line(out, format_args!("run {}, {:.1} s, seed {}", s.run_id, s.seconds, s.seed));
}

fn arm_text(out: &mut String, arm: &Arm) {
    let image = &arm.image;
    let compiler = match &image.compiler_version {
        Some(version) => format!("{} {version}", image.compiler),
        None => image.compiler.clone(),
    };
    let host = if image.host_object { ", with host object" } else { "" };
    let arch = image.arch.as_deref().unwrap_or("unknown architecture");
    line(out, format_args!("\n{}  ({compiler}, {arch}{host})", arm.name));
    line(out, format_args!("  {:<13}{:>14}{:>9}{:>12}{:>12}{:>12}", "call", "count", "errors", "p50", "p99", "max"));
    for name in ["load", "get_function", "launch", "sync", "unload"] {
        if let Some(c) = arm.calls.get(name) {
            let (p50, p99, max) = (time(c.p50_ns), time(c.p99_ns), time(c.max_ns));
            line(out, format_args!("  {name:<13}{:>14}{:>9}{p50:>12}{p99:>12}{max:>12}", grouped(c.count), c.errors));
        }
    }
    let loads = arm.calls.get("load").map_or(0, |c| c.count - c.errors.min(c.count));
    let share = if loads > 0 { 100.0 * arm.kept as f64 / loads as f64 } else { 0.0 };
    line(
        out,
        format_args!(
            "  {} loads/s over {:.1} s in {} {}; {} modules kept ({share:.1} %); {} launches verified",
            grouped(arm.loads_per_second as u64),
            arm.seconds,
            arm.trials,
            if arm.trials == 1 { "child" } else { "children" },
            grouped(arm.kept),
            grouped(arm.verified)
        ),
    );
    exposure_text(out, arm);
    faults_text(out, arm);
}

fn exposure_text(out: &mut String, arm: &Arm) {
    let e = &arm.exposure;
    let how = match e.method.as_str() {
        "exact" => "all calls looked at".to_owned(),
        _ => format!("scaled from {} launches that were looked at", grouped(e.launches_looked_at)),
    };
    line(
        out,
        format_args!(
            "  exposure: {} launches during an unload of another module ({how})",
            grouped(e.launch_during_unload)
        ),
    );
}

fn faults_text(out: &mut String, arm: &Arm) {
    let launches = arm.calls.get("launch").map_or(0, |c| c.count);
    if arm.faults == 0 {
        let bound = arm.faults_per_million_launches.high.map_or("unbounded".to_owned(), |h| format!("{h:.3}"));
        let of = grouped(launches);
        line(out, format_args!("  faults: 0 in {of} launches (upper bound {bound} per million at 95 %)"));
        return;
    }
    let rate = interval(&arm.faults_per_million_launches);
    let lost = arm.children_lost;
    line(out, format_args!("  faults: {} ({lost} children lost), {rate} per million launches", grouped(arm.faults)));
    if let Some(first) = &arm.seconds_to_first_fault {
        let median = first.median.map_or("not reached".to_owned(), |m| format!("{m:.3} s"));
        let high = first.high.map_or("unbounded".to_owned(), |h| format!("{h:.3}"));
        line(out, format_args!("  time to a child's first fault: median {median} ({:.3} to {high})", first.low));
    }
}

fn interval(i: &Interval) -> String {
    let high = i.high.map_or("unbounded".to_owned(), |h| format!("{h:.3}"));
    format!("{:.3} ({:.3} to {high})", i.best, i.low)
}

fn family_text(out: &mut String, family: &Family, s: &Summary) {
    line(out, format_args!("\nfamily {}: {}", family.id, family.name));
    let arms: Vec<String> = family.per_arm.iter().map(|(arm, count)| format!("{count} in {arm}")).collect();
    line(out, format_args!("  {} faults: {}", grouped(family.count), arms.join(", ")));
    if let Some(fault) = s.faults.iter().find(|f| f.family == family.id) {
        fault_text(out, fault);
    }
}

fn fault_text(out: &mut String, f: &Fault) {
    let mut what = format!("  e.g. fault {} in child {}: {} in {}", f.id, f.trial, f.kind, f.phase);
    if let Some(signal) = f.signal {
        let _ = write!(what, ", signal {signal}");
    }
    if let Some(address) = f.fault_address {
        let _ = write!(what, " at {address:#x}");
    }
    if let Some(place) = f.place {
        let _ = write!(what, ", place {place}");
    }
    if let (Some(module), Some(offset)) = (&f.module, f.offset) {
        let file = Path::new(module).file_name().map_or_else(|| module.clone(), |n| n.to_string_lossy().into_owned());
        let _ = write!(what, " ({file}+{offset:#x})");
    }
    line(out, format_args!("{what}"));
    for evidence in &f.evidence {
        line(out, format_args!("    - {evidence}"));
    }
    if let Some(file) = &f.evidence_file {
        line(out, format_args!("    stacks and calls: {}", file.display()));
    }
}

fn comparison_text(out: &mut String, s: &Summary) {
    let Some(c) = &s.comparison else { return };
    let number = |x: Option<f64>, none: &str| x.map_or(none.to_owned(), |x| format!("{x:.2}"));
    let ratio = format!(
        "{} ({:.2} to {})",
        number(c.rate_ratio.best, "unbounded"),
        c.rate_ratio.low,
        number(c.rate_ratio.high, "unbounded")
    );
    let p = c.p_value.map_or("none".to_owned(), |p| format!("{p:.2e}"));
    line(
        out,
        format_args!(
            "\n{} against {}: rate ratio {ratio}, p = {p} at any time, {} blocks",
            s.arms[0].name, s.arms[1].name, c.blocks
        ),
    );
    line(out, format_args!("  {}", c.stopped_because));
}

fn verdict_text(out: &mut String, s: &Summary) {
    let confidence = s.verdict.confidence.map_or_else(String::new, |c| format!(", {c}"));
    line(out, format_args!("\nverdict: {}{confidence}: {}", s.verdict.owner, s.verdict.text));
    for evidence in &s.verdict.evidence {
        line(out, format_args!("  - {evidence}"));
    }
    line(out, format_args!("  next: {}", s.verdict.next));
}

/// The command that does it again: as given, with the seed that was used.
fn again(s: &Summary) -> String {
    let mut words: Vec<String> = s.command.iter().map(|word| quoted(word)).collect();
    if !s.command.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed {}", s.seed));
    }
    words.join(" ")
}

/// A word as a POSIX shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A time in the unit that fits it.
fn time(ns: u64) -> String {
    match ns {
        0..=9_999 => format!("{ns} ns"),
        10_000..=9_999_999 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..=9_999_999_999 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_times_and_words_as_people_read_them() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(3_000_000_000), "3,000,000,000");
        assert_eq!(grouped(12), "12");
        assert_eq!(time(1_500), "1500 ns");
        assert_eq!(time(15_000), "15.0 us");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("--keep=4"), "--keep=4");
    }
}
