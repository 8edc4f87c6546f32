//! The fault lies in the driver library, below a call whose use was legal.

use super::{Facts, JournalWord, Judgement, by_journal, calls_line, journal_line, judgement, lines, watch_line};
use crate::vocabulary::{Confidence, Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    if facts.kind != Kind::Crash || facts.place != Some(Place::Libcuda) || facts.journal == JournalWord::Unreadable {
        return None;
    }
    let own_thread = facts.call.is_none() && !facts.own_thread;
    let who = if own_thread { "a thread that the driver made" } else { "the driver" };
    let confidence = if facts.call.is_some() || own_thread { by_journal(facts) } else { Confidence::Suspected };
    let unload = facts.unload_beside().then(|| "another thread was unloading another module".to_owned());
    let tile =
        facts.tile.then(|| "the image carries host code of the Tile IR compiler; the fault is not in it".to_owned());
    Some(judgement(
        Owner::Driver,
        Some(confidence),
        format!("{who} faulted in its own code"),
        lines([
            Some("pc in the driver library".to_owned()),
            calls_line(facts),
            unload,
            tile,
            journal_line(facts),
            watch_line(facts),
        ]),
        "run the regular twin beside this image, and this image with --lock unload",
    ))
}
