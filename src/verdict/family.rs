//! Faults that are one bug: by kind, phase, calls in flight, place and library, never by the top frame, since one race shows
//! many signatures.

use super::Facts;
use crate::vocabulary::{Kind, Phase, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What faults of one bug have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Family {
    /// Short and stable across runs and machines.
    pub id: String,
    /// A name that a person can say.
    pub name: String,
}

/// The family of a fault.
pub fn of(facts: &Facts) -> Family {
    let place = facts.place.map(coarse);
    let beside = beside(facts);
    let what = match facts.kind {
        Kind::Crash => signal_name(facts.signal).to_owned(),
        Kind::ApiError => facts.code.map_or("no way to begin".to_owned(), |code| format!("code {code}")),
        kind => kind.word().replace('_', " "),
    };
    let mut name = format!("{what} in {}", facts.phase.word().replace('_', " "));
    if let Some(place) = place.filter(|_| facts.kind == Kind::Crash) {
        name.push_str(&format!(", {}", place.replace('_', " ")));
    }
    if !beside.is_empty() {
        name.push_str(&format!(", beside {}", beside.join(" and ")));
    }
    if let Some(violation) = &facts.violation {
        name.push_str(&format!(", after an illegal {}", violation.call));
    }
    Family { id: id(&name), name }
}

/// Code in the driver and code that the driver called and that is gone are one place here: a freed record shows as either.
fn coarse(place: Place) -> &'static str {
    place.word()
}

/// What the other threads were doing that can race with a load, a launch or an unload.
fn beside(facts: &Facts) -> Vec<&'static str> {
    if facts.kind == Kind::ApiError || facts.kind == Kind::WrongResult {
        return Vec::new();
    }
    let phases: BTreeSet<Phase> = facts.others.iter().map(|(call, _)| call.phase()).collect();
    match facts.phase {
        // A launch that dies beside an unload dies of the unload, whatever else goes on.
        Phase::Launch | Phase::Load | Phase::GetFunction if phases.contains(&Phase::Unload) => vec!["unload"],
        Phase::Unload if phases.contains(&Phase::Launch) => vec!["launch"],
        _ => Vec::new(),
    }
}

fn signal_name(signal: Option<i32>) -> &'static str {
    match signal {
        Some(libc::SIGSEGV) => "SIGSEGV",
        Some(libc::SIGBUS) => "SIGBUS",
        Some(libc::SIGILL) => "SIGILL",
        Some(libc::SIGFPE) => "SIGFPE",
        Some(libc::SIGABRT) => "SIGABRT",
        Some(libc::SIGTRAP) => "SIGTRAP",
        Some(libc::SIGSYS) => "SIGSYS",
        Some(libc::SIGKILL) => "SIGKILL",
        Some(_) => "a signal",
        None => "an abnormal exit",
    }
}

/// Eight hex digits of the name's FNV-1a hash (Fowler, Noll, Vo; 64-bit offset basis and prime).
fn id(name: &str) -> String {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}
