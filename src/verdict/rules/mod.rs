//! One rule a file. Each looks at the facts of one fault and either has nothing to say or names an owner with what speaks for
//! it and against it. The first that speaks, in the order below, is the judgement.

mod anonymous_code;
mod broken_contract;
mod device_code;
mod environment;
mod exhausted;
mod hang_in_driver;
mod heap_corruption;
mod host_code;
mod in_driver;
mod killed;
mod lost_jump;
mod own_code;
mod unmapped_host_code;
mod wrong_code;
mod wrong_result;

use super::{Facts, JournalWord, Judgement};
use crate::evidence::Watch;
use crate::vocabulary::{Confidence, Owner};

/// A rule: facts in, a judgement where it has something to say.
type Rule = fn(&Facts) -> Option<Judgement>;

/// Illegal use first: nobody else is blamed while it explains the fault. Then what the process itself says, then places.
const RULES: &[Rule] = &[
    killed::rule,
    broken_contract::rule,
    exhausted::rule,
    environment::rule,
    device_code::rule,
    wrong_code::rule,
    wrong_result::rule,
    heap_corruption::rule,
    own_code::rule,
    hang_in_driver::rule,
    unmapped_host_code::rule,
    host_code::rule,
    anonymous_code::rule,
    lost_jump::rule,
    in_driver::rule,
];

/// Judges one fault by itself.
pub fn alone(facts: &Facts) -> Judgement {
    RULES.iter().find_map(|rule| rule(facts)).unwrap_or_else(|| insufficient(facts))
}

fn insufficient(facts: &Facts) -> Judgement {
    let place = match facts.place {
        Some(place) => format!("the fault lies in {place}, which by itself names nobody"),
        None => "the place of the fault is not known".to_owned(),
    };
    judgement(
        Owner::Insufficient,
        None,
        "the evidence does not separate the candidates",
        lines([Some(place), calls_line(facts), journal_line(facts), watch_line(facts)]),
        "run the regular twin beside this image, and this image with --threads 1",
    )
}

fn judgement(
    owner: Owner,
    confidence: Option<Confidence>,
    text: impl Into<String>,
    evidence: Vec<String>,
    next: impl Into<String>,
) -> Judgement {
    Judgement { owner, confidence, text: text.into(), evidence, next: next.into() }
}

/// What the journal adds: a legal one makes a place *likely*, an unreadable one leaves it *suspected*.
fn by_journal(facts: &Facts) -> Confidence {
    match facts.journal {
        JournalWord::Legal => Confidence::Likely,
        JournalWord::Broken | JournalWord::Unreadable => Confidence::Suspected,
    }
}

fn journal_line(facts: &Facts) -> Option<String> {
    match facts.journal {
        JournalWord::Legal => Some(
            "no call in the journal broke the contract: each module was waited for, and not touched after its unload"
                .into(),
        ),
        JournalWord::Broken => facts.violation.as_ref().map(|v| v.text.clone()),
        JournalWord::Unreadable => Some("the journal cannot be read, so that illegal use cannot be excluded".into()),
    }
}

/// The calls in flight, in words.
fn calls_line(facts: &Facts) -> Option<String> {
    let call = facts.call?;
    let mut line = format!("in flight in the faulting thread: {call} of module {}", facts.module_serial);
    let others: Vec<String> = facts.others.iter().map(|(call, module)| format!("{call} of module {module}")).collect();
    if !others.is_empty() {
        line.push_str(&format!("; in the others: {}", others.join(", ")));
    }
    Some(line)
}

/// What makes a weaker kind of evidence weaker.
fn watch_line(facts: &Facts) -> Option<String> {
    (facts.watch == Watch::Handler)
        .then(|| "taken by a handler in the child, since ptrace was refused: the weaker kind".to_owned())
}

fn lines(parts: impl IntoIterator<Item = Option<String>>) -> Vec<String> {
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
