//! The allocator found its heap damaged. Who damaged it, it cannot know.

use super::{Facts, Judgement, calls_line, judgement, lines};
use crate::vocabulary::{Confidence, Kind, Owner, Place};

pub fn rule(facts: &Facts) -> Option<Judgement> {
    let message = facts.heap_message.as_ref()?;
    let died = matches!(facts.kind, Kind::Crash | Kind::Hang | Kind::Masked);
    died.then(|| {
        let handler = (facts.kind == Kind::Hang)
            .then(|| "aborted in malloc, and the handler of that abort waits for malloc's lock".to_owned());
        let place = (facts.place == Some(Place::Libc)).then(|| "detected in libc, not caused by it".to_owned());
        judgement(
            Owner::Libc,
            Some(Confidence::Suspected),
            "heap corruption whose author is unknown",
            lines([Some(format!("stderr: {message}")), place, handler, calls_line(facts)]),
            "repeat under poison and with the regular twin; valgrind or a sanitizer build names the author",
        )
    })
}
