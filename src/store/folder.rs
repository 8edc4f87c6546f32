//! Writing a run's folder.

use super::{RunEnd, RunHeader, TrialRecord};
use crate::plan::JournalKind;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why something could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", path.display(), hint(source))]
pub struct StoreError {
    /// The file or folder concerned.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => " (choose another folder with --out)",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (free some space, or choose another folder with --out)"
        }
        _ => "",
    }
}

/// Turns an I/O error into a [`StoreError`] that names the path.
fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    move |source| StoreError { path: path.to_owned(), source }
}

/// A run's folder, open for writing.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    trials: File,
    /// End of the last whole line: what a failed write leaves behind is cut off there.
    trials_end: u64,
}

impl RunFolder {
    /// Makes `OUT/RUN_ID` with its header and the images, and points `OUT/latest` at it.
    ///
    /// # Errors
    /// When the folder cannot be made or written; nothing is left half made under `latest` then.
    pub fn create(out: &Path, header: &RunHeader, images: &[(String, &[u8])]) -> Result<RunFolder, StoreError> {
        fs::create_dir_all(out).map_err(at(out))?;
        let path = out.join(&header.run_id);
        fs::create_dir(&path).map_err(at(&path))?;
        let calls = (header.plan.journal == JournalKind::Full).then_some("calls");
        for folder in ["images", "faults"].into_iter().chain(calls) {
            let folder = path.join(folder);
            fs::create_dir(&folder).map_err(at(&folder))?;
        }
        for (sha256, bytes) in images {
            write_synced(&path.join("images").join(format!("{sha256}.image")), bytes)?;
        }
        write_json(&path.join("run.json"), header)?;
        let trials_path = path.join("trials.jsonl");
        let trials = OpenOptions::new().create_new(true).append(true).open(&trials_path).map_err(at(&trials_path))?;
        sync_folder(&path)?;
        point_latest_at(out, &header.run_id)?;
        Ok(RunFolder { path, trials, trials_end: 0 })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that holds every call of a trial, where the run keeps them.
    pub fn calls(&self, trial: u64) -> PathBuf {
        calls_file(&self.path, trial)
    }

    /// Writes a fault's evidence and syncs it; gives its path relative to the folder.
    ///
    /// # Errors
    /// When it cannot be written: the caller keeps a soft error and goes on.
    pub fn write_fault(&self, number: u64, evidence: &impl Serialize) -> Result<PathBuf, StoreError> {
        let relative = PathBuf::from(format!("faults/{number:04}.json"));
        write_json(&self.path.join(&relative), evidence)?;
        Ok(relative)
    }

    /// Takes a fault's evidence back that turned out to be none.
    pub fn remove_fault(&self, relative: &Path) {
        let _ = fs::remove_file(self.path.join(relative));
    }

    /// Adds a trial's line and syncs it. A line that could not be written whole is taken back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append_trial(&mut self, trial: &TrialRecord) -> Result<(), StoreError> {
        let path = self.path.join("trials.jsonl");
        let mut line = to_json(trial, &path)?;
        line.push(b'\n');
        let written = self.trials.write_all(&line).and_then(|()| self.trials.sync_data());
        if let Err(source) = written {
            let _ = self.trials.set_len(self.trials_end);
            return Err(StoreError { path, source });
        }
        self.trials_end += line.len() as u64;
        Ok(())
    }

    /// Writes how the run ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&self, end: &RunEnd) -> Result<(), StoreError> {
        write_json(&self.path.join("end.json"), end)
    }

    /// Writes something made for people or programs beside the records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_report(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        write_synced(&path, bytes)?;
        Ok(path)
    }
}

/// The file that holds every call of a trial, in the run's folder.
pub fn calls_file(run: &Path, trial: u64) -> PathBuf {
    run.join(format!("calls/{trial:06}.calls"))
}

fn to_json(value: &impl Serialize, path: &Path) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|e| StoreError { path: path.to_owned(), source: io::Error::other(e) })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|e| StoreError { path: path.to_owned(), source: io::Error::other(e) })?;
    write_synced(path, &bytes)
}

/// Writes beside the file and renames, so that a reader sees the old file or the new one, never half of one.
fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let beside = path.with_extension("part");
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&beside);
        StoreError { path: path.to_owned(), source }
    })
}

fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(at(path))
}

fn point_latest_at(out: &Path, run_id: &str) -> Result<(), StoreError> {
    let beside = out.join(format!(".latest-{}", std::process::id()));
    let latest = out.join("latest");
    if fs::symlink_metadata(&latest).is_ok_and(|meta| !meta.file_type().is_symlink()) {
        // Somebody's own file or folder of that name stays.
        return Ok(());
    }
    let _ = fs::remove_file(&beside);
    std::os::unix::fs::symlink(run_id, &beside).map_err(at(&beside))?;
    fs::rename(&beside, &latest).map_err(|source| {
        let _ = fs::remove_file(&beside);
        StoreError { path: latest.clone(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{read, resolve};
    use super::*;
    use crate::store::tests::{header, trial};

    #[test]
    fn what_is_written_is_read_back_and_a_torn_line_costs_only_itself() {
        let out = tempfile::tempdir().unwrap();
        let mut folder = RunFolder::create(out.path(), &header(), &[("00".into(), b"image")]).unwrap();
        folder.append_trial(&trial(0)).unwrap();
        folder.append_trial(&trial(1)).unwrap();
        let latest = resolve(Path::new("latest"), out.path());
        let data = read(&latest).unwrap();
        assert_eq!((data.trials.len(), data.end.is_none(), data.soft_errors.len()), (2, true, 0));
        let end = RunEnd { exit_code: 0, seconds: 1.0, warnings: vec![] };
        folder.finish(&end).unwrap();
        let mut torn = fs::read(latest.join("trials.jsonl")).unwrap();
        torn.truncate(torn.len() - 10);
        fs::write(latest.join("trials.jsonl"), torn).unwrap();
        let data = read(&latest).unwrap();
        assert_eq!((data.trials, data.end, data.soft_errors.len()), (vec![trial(0)], Some(end), 1));
        assert_eq!(fs::read(latest.join("images/00.image")).unwrap(), b"image");
    }

    #[test]
    fn a_folder_that_cannot_be_written_names_itself_and_the_way_out() {
        let error = RunFolder::create(Path::new("/proc/nowhere"), &header(), &[]).unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere"), "{error}");
    }

    #[test]
    fn latest_follows_the_newest_run() {
        let out = tempfile::tempdir().unwrap();
        for id in ["a", "b"] {
            RunFolder::create(out.path(), &RunHeader { run_id: id.into(), ..header() }, &[]).unwrap();
        }
        assert_eq!(fs::read_link(out.path().join("latest")).unwrap(), Path::new("b"));
    }
}
