//! A thread of the driver's own that has nothing to do with the bug: a real driver has some, and one may end at any time.

use crate::random;
use crate::threads;
use std::time::Duration;

/// Starts one or not, by the seed; by the seed, it ends after a while or stays.
pub fn start() {
    let draw = random::seeded(4);
    if draw.is_multiple_of(3) {
        return;
    }
    let life = (draw % 3 == 1).then(|| Duration::from_millis(20 + (draw >> 8) % 200));
    // Where it cannot be started, the driver works without.
    let _ = threads::spawn("sim-events", move || match life {
        Some(life) => std::thread::sleep(life),
        None => loop {
            std::thread::park();
        },
    });
}
