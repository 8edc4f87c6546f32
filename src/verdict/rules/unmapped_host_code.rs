//! The driver called host code of an image after it had unmapped it.

use super::{Facts, Judgement, by_journal, calls_line, journal_line, judgement, lines, watch_line};
use crate::vocabulary::{Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    (facts.kind == Kind::Crash && facts.place == Some(Place::HostObjectUnmapped)).then(|| {
        let unload = facts.unload_beside().then(|| "another thread was unloading another module".to_owned());
        judgement(
            Owner::Driver,
            Some(by_journal(facts)),
            "the driver called host code of an image where it is no longer mapped",
            lines([facts.place_note.clone(), calls_line(facts), unload, journal_line(facts), watch_line(facts)]),
            "run the regular twin beside this image (it has no host code), and --lock unload: both should be free of it",
        )
    })
}
