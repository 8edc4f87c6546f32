//! Reading a run's folder back, whole or cut short.

use super::{RunEnd, RunHeader, TrialRecord};
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest file that is read whole, bytes: a folder that someone else made may hold anything.
const LIMIT: u64 = 1 << 30;

/// What a folder holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RunData {
    /// The header.
    pub header: RunHeader,
    /// The trials that were finished.
    pub trials: Vec<TrialRecord>,
    /// How it ended; none: it was killed.
    pub end: Option<RunEnd>,
    /// What could not be read, one line each.
    pub soft_errors: Vec<String>,
}

/// The folder that a user means by RUN: a path, or `latest` under the results folder.
pub fn resolve(run: &Path, out: &Path) -> PathBuf {
    if run == Path::new("latest") && !run.exists() { out.join("latest") } else { run.to_owned() }
}

/// Reads a run's folder.
///
/// # Errors
/// When there is no readable header; anything else that is missing or damaged becomes a soft error.
pub fn read(folder: &Path) -> io::Result<RunData> {
    let header: RunHeader = read_json(&folder.join("run.json"))?;
    let mut soft_errors = Vec::new();
    let trials = read_trials(&folder.join("trials.jsonl"), &mut soft_errors);
    if !folder.join("end.json").exists() {
        soft_errors.extend(orphans(folder, &trials));
    }
    let end_path = folder.join("end.json");
    let end = match read_json::<RunEnd>(&end_path) {
        Ok(end) => Some(end),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => {
            soft_errors.push(e.to_string());
            None
        }
    };
    Ok(RunData { header, trials, end, soft_errors })
}

/// Evidence whose trial was cut off before its line was written: found, and not counted.
fn orphans(folder: &Path, trials: &[TrialRecord]) -> Vec<String> {
    let counted: Vec<&Path> =
        trials.iter().flat_map(|t| &t.faults).filter_map(|f| f.evidence_file.as_deref()).collect();
    let files = fs::read_dir(folder.join("faults")).into_iter().flatten().flatten();
    let names = files.map(|file| Path::new("faults").join(file.file_name()));
    let left = names.filter(|name| name.extension().is_some_and(|e| e == "json") && !counted.contains(&name.as_path()));
    left.map(|name| format!("{} holds a fault whose trial was cut off: it is not in the counts", name.display()))
        .collect()
}

fn read_trials(path: &Path, soft_errors: &mut Vec<String>) -> Vec<TrialRecord> {
    let text = match read_bounded(path) {
        Ok(text) => text,
        Err(e) => {
            soft_errors.push(e.to_string());
            return Vec::new();
        }
    };
    let mut trials = Vec::new();
    for (number, line) in text.split(|&b| b == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(trial) => trials.push(trial),
            Err(e) => soft_errors.push(format!("{}: line {}: {e}", path.display(), number + 1)),
        }
    }
    trials
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = read_bounded(path)?;
    serde_json::from_slice(&bytes)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", path.display())))
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let meta = fs::metadata(path).map_err(named)?;
    if !meta.is_file() || meta.len() > LIMIT {
        let text = format!("{}: not a regular file of at most {LIMIT} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    fs::read(path).map_err(named)
}
