//! Makes calls take the time that the profile asks for: log-normal around a median, seeded.

use crate::profile::Profile;
use crate::random;
use crate::wait;
use std::sync::OnceLock;
use std::time::Duration;

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Call {
    /// Loading a module or library.
    Load,
    /// Looking a kernel up.
    GetFunction,
    /// Launching.
    Launch,
    /// Waiting for the device.
    Sync,
    /// Unloading.
    Unload,
    /// Copying or filling memory.
    Copy,
    /// Allocating or freeing memory.
    Alloc,
    /// A kernel's run on the device.
    Kernel,
}

struct Durations {
    /// Median of each call, ns; 0: none.
    median: [u32; 8],
    spread: f64,
}

static DURATIONS: OnceLock<Durations> = OnceLock::new();

/// Takes the durations of a profile over; only the first profile of a process counts.
pub fn adopt(profile: &Profile) {
    if profile.latency.is_empty() {
        return;
    }
    let mut median = [0; 8];
    for &(call, ns) in profile.latency {
        median[call as usize] = ns;
    }
    let _ = DURATIONS.set(Durations { median, spread: profile.spread });
}

/// Passes the time that `call` takes; nothing where the profile adds none.
#[inline]
pub fn pay(call: Call) {
    if let Some(durations) = DURATIONS.get() {
        let median = durations.median[call as usize];
        if median != 0 {
            wait::pass(draw(median, durations.spread));
        }
    }
}

fn draw(median: u32, spread: f64) -> Duration {
    // Box and Muller: two uniform numbers give a normal one.
    let normal = (-2.0 * random::unit().ln()).sqrt() * (std::f64::consts::TAU * random::unit()).cos();
    Duration::from_nanos((f64::from(median) * (spread * normal).exp()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_draws_lie_below_the_median() {
        let below = (0..4000).filter(|_| draw(10_000, 0.25) < Duration::from_micros(10)).count();
        assert!((1_800..2_200).contains(&below), "{below}");
    }
}
