//! The journal's clock: the time stamp counter where it can be trusted, else `clock_gettime`.
//!
//! A call is entered and left within some tens of ns, so the clock is most of the recorder's cost: reading the TSC costs about
//! 12 ns, `clock_gettime` 33 (measured, one machine). Ticks become ns of `CLOCK_MONOTONIC` in the reader, by interpolation
//! between two moments at which it read both clocks itself: the child's word is not needed for it.
#![allow(unsafe_code)] // reading the TSC and cpuid are intrinsics

use super::ClockSource;
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;

/// The least time between two readings of both clocks from which a rate is taken, ns. An error of 50 ns a reading makes the
/// rate wrong by 50 in a million, far below the two digits of a latency.
const CALIBRATION_NS: u64 = 1_500_000;

/// Now, ns of `CLOCK_MONOTONIC`.
#[inline]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn tsc() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor; where a process is forbidden to use it, `trusted_source` has read it
    // before any journal asks for it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Never called: only x86-64 is ever given [`ClockSource::Tsc`].
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn tsc() -> u64 {
    monotonic_ns()
}

/// Bit 8 of EDX of leaf 0x8000_0007: the TSC runs at one rate in all power states (the flags `constant_tsc nonstop_tsc`).
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // safe in newer compilers than the oldest that this builds with
fn tsc_is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    // SAFETY: CPUID exists on every x86-64 processor, and the leaf is read only where the highest leaf reaches it.
    unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0 }
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_is_invariant() -> bool {
    false
}

/// The clock to use here: the TSC where the processor says that it is invariant and the kernel keeps its own time by it.
pub(super) fn trusted_source() -> ClockSource {
    static SOURCE: OnceLock<ClockSource> = OnceLock::new();
    *SOURCE.get_or_init(|| {
        let kernels = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let kernel_trusts = kernels.is_ok_and(|name| name.trim() == "tsc");
        if kernel_trusts && tsc_is_invariant() { ClockSource::Tsc } else { ClockSource::Monotonic }
    })
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub tick: u64,
    pub mono_ns: u64,
}

impl Moment {
    /// Now: the closest of some readings, so that an interruption between the two clocks does not count.
    pub fn now(source: ClockSource) -> Moment {
        if source == ClockSource::Monotonic {
            let mono_ns = monotonic_ns();
            return Moment { tick: mono_ns, mono_ns };
        }
        let reading = || {
            let before = tsc();
            let mono_ns = monotonic_ns();
            let width = tsc().wrapping_sub(before);
            (width, Moment { tick: before + width / 2, mono_ns })
        };
        let closest = (0..5).map(|_| reading()).min_by_key(|(width, _)| *width);
        closest.map_or_else(|| reading().1, |(_, moment)| moment)
    }
}

/// The clock of one journal, as its creator knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub source: ClockSource,
    /// When the journal was made.
    pub made: Moment,
    /// ns a tick.
    rate: f64,
}

impl Clock {
    /// Reads both clocks. The first call in a process takes up to 1.5 ms, to learn the rate.
    pub fn start() -> Clock {
        let source = trusted_source();
        let rate = if source == ClockSource::Tsc { ns_per_tick() } else { 1.0 };
        Clock { source, made: Moment::now(source), rate }
    }

    /// ns a tick, times 2^32: what writers multiply by.
    pub fn fixed_point(&self) -> u64 {
        (self.rate * 4_294_967_296.0) as u64
    }

    /// Converts ticks between the making of the journal and `now`.
    pub fn until(&self, now: Moment) -> Conversion {
        let ticks = now.tick.saturating_sub(self.made.tick) as f64;
        let ns = now.mono_ns.saturating_sub(self.made.mono_ns) as f64;
        let own_rate = ticks > 0.0 && ns >= CALIBRATION_NS as f64 && self.source == ClockSource::Tsc;
        Conversion { made: self.made, now, rate: if own_rate { ns / ticks } else { self.rate } }
    }
}

/// The rate of the TSC, from two moments of this process at least [`CALIBRATION_NS`] apart.
fn ns_per_tick() -> f64 {
    static FIRST: OnceLock<Moment> = OnceLock::new();
    let first = FIRST.get_or_init(|| Moment::now(ClockSource::Tsc));
    while monotonic_ns() < first.mono_ns + CALIBRATION_NS {
        std::hint::spin_loop();
    }
    let now = Moment::now(ClockSource::Tsc);
    (now.mono_ns - first.mono_ns) as f64 / (now.tick.wrapping_sub(first.tick)).max(1) as f64
}

/// From ticks to ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub made: Moment,
    pub now: Moment,
    rate: f64,
}

impl Conversion {
    /// The time of `tick`, ns of `CLOCK_MONOTONIC`.
    pub fn ns(&self, tick: u64) -> u64 {
        if tick >= self.made.tick {
            self.made.mono_ns.saturating_add(((tick - self.made.tick) as f64 * self.rate) as u64)
        } else {
            self.made.mono_ns.saturating_sub(((self.made.tick - tick) as f64 * self.rate) as u64)
        }
    }

    /// Whether `tick` lies in the journal's life. The slack covers the other processor's counter and the time between the
    /// reading of the clock and the reading of the memory.
    pub fn plausible(&self, tick: u64) -> bool {
        let slack = (50_000_000.0 / self.rate) as u64;
        tick.saturating_add(slack) >= self.made.tick && tick <= self.now.tick.saturating_add(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_monotonic_time() {
        let clock = Clock::start();
        let inside = Moment::now(clock.source);
        let mut last = Moment::now(clock.source);
        while last.mono_ns < clock.made.mono_ns + 3_000_000 {
            last = Moment::now(clock.source);
        }
        let conversion = clock.until(last);
        for moment in [clock.made, inside, last] {
            // A reading may be split by an interruption in spite of five attempts: allow a scheduler's tick, not a wrong rate.
            assert!(conversion.ns(moment.tick).abs_diff(moment.mono_ns) < 200_000);
            assert!(conversion.plausible(moment.tick));
        }
        assert!(!conversion.plausible(u64::MAX));
        assert!(!conversion.plausible(0));
    }

    #[test]
    fn the_fixed_point_rate_is_the_rate() {
        let clock = Clock { source: ClockSource::Tsc, made: Moment { tick: 1000, mono_ns: 0 }, rate: 0.5 };
        assert_eq!(clock.fixed_point(), 1 << 31);
        let conversion = clock.until(Moment { tick: 21_001_000, mono_ns: 7_000_000 });
        assert_eq!(conversion.ns(1000 + 3_000_000), 1_000_000);
        let early = clock.until(Moment { tick: 3000, mono_ns: 1000 });
        assert_eq!(early.ns(2000), 500, "too early for a rate of its own: the calibrated one");
    }
}
