//! The trust gate between children: after a lost child, does a known good image still load, launch and compute the right sums?
//!
//! A host or a device that a fault has damaged would fail everything that comes after it, and every later finding would be
//! that damage found again.

use super::trial::{self, End, TrialSpec};
use crate::cubin::builtin;
use crate::journal::NoteKind;
use crate::plan::{Order, Verify, Workload};
use crate::vocabulary::Call;
use std::sync::Arc;
use std::time::Duration;

/// How long the known good image is hammered, seconds: some rounds even on a slow device.
const SECONDS: f64 = 0.02;
/// A device that is coming back gets this long before it is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The known good image ran and its sums are right.
    Sound,
    /// It did not, twice; why.
    Broken(String),
    /// There is no known good image for this architecture.
    NotTried(String),
}

/// Tries the known good image under the settings of the child that was lost.
pub fn check(lost: &TrialSpec, arch: Option<u32>) -> Trust {
    let Some(image) = arch.and_then(builtin::regular_add) else {
        return Trust::NotTried(
            "no known good image for this architecture: what came after a lost child is not vouched for".into(),
        );
    };
    let image: Arc<[u8]> = image.into();
    match attempt(lost, &image) {
        Ok(()) => return Trust::Sound,
        Err(_) => std::thread::sleep(PAUSE),
    }
    match attempt(lost, &image) {
        Ok(()) => Trust::Sound,
        Err(why) => Trust::Broken(format!("a known good image failed after child {}: {why}", lost.order.child)),
    }
}

fn attempt(lost: &TrialSpec, image: &Arc<[u8]>) -> Result<(), String> {
    let workload = Workload { threads: 1, keep: 0, verify: Verify::All, ..Workload::default() };
    let order = Order { image_path: "known good image".into(), seconds: SECONDS, workload, ..lost.order.clone() };
    let spec = TrialSpec { order, image: image.clone(), core_dir: None, ..lost.clone() };
    let outcome = trial::run(spec, &mut ()).map_err(|e| e.to_string())?;
    let notes = &outcome.journal.notes;
    if let Some(note) = notes.iter().find(|n| n.kind != NoteKind::Info) {
        return Err(note.text.clone());
    }
    let verified = outcome.totals.calls.get(&Call::Verify).map_or(0, |c| c.count);
    match outcome.end {
        End::Exited(0) if verified > 0 => Ok(()),
        End::Exited(0) => Err("no launch was verified".into()),
        other => Err(format!("its child ended badly ({other:?})")),
    }
}
