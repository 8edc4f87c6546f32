//! Looks at results: inputs of each thread's own, poison where the sum is to appear, the sum read back and compared.
//!
//! On the sampled schedule a look is taken so seldom that it costs less than one part in a hundred of the time, by what looks
//! and rounds were measured to take, at rounds that chance picks (a fixed step could miss every kept module).

use super::arguments::ADD_ELEMENTS;
use super::trouble::{Failed, direct};
use crate::driver::entries::{CuDevicePtr, Entries};
use crate::journal::ThreadWriter;
use crate::plan::Verify;
use crate::vocabulary::Call;
use std::time::{Duration, Instant};

/// Written over the place of the sum before a launch that is looked at: no sum looks like it.
const POISON: u8 = 0xff;
/// What a look may cost, as one part in this many of the time.
const SHARE: u32 = 125;
/// Rounds until the second look, when no time is known yet.
const SECOND_LOOK: u64 = 256;

/// What a launch left behind that is not the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wrong {
    /// First element that differs.
    pub index: usize,
    /// What it should be.
    pub expected: f32,
    /// What it is.
    pub got: f32,
    /// How many differ.
    pub count: usize,
}

impl Wrong {
    /// In words.
    pub fn describe(&self) -> String {
        let Wrong { index, expected, got, count } = self;
        let untouched = got.to_bits().to_le_bytes() == [POISON; 4];
        let got = if untouched { "untouched (poison from before the launch)".into() } else { format!("{got}") };
        format!("element {index} is {got}, expected {expected}; {count} of {ADD_ELEMENTS} elements are wrong")
    }
}

/// One thread's looks at the add kernel's results.
pub(super) struct Checker {
    sum: CuDevicePtr,
    expected: Vec<f32>,
    back: Vec<f32>,
    schedule: Schedule,
}

impl Checker {
    /// Fills the inputs of this thread: values that no other thread has, whose sums are exact.
    pub fn new(
        how: Verify,
        buffers: &[CuDevicePtr],
        seed: u64,
        entries: &Entries,
        pen: &mut ThreadWriter,
    ) -> Result<Checker, Failed> {
        let [a, b, sum] = *buffers else { unreachable!("the add kernel has three buffers") };
        let (start_a, start_b) = (mix(seed), mix(seed ^ 0x5851_f42d_4c95_7f2d));
        let value = |start: u64, step: u64, index: usize| ((start + step * index as u64) & 0xf_ffff) as f32;
        let column = |start, step| (0..ADD_ELEMENTS).map(|index| value(start, step, index)).collect::<Vec<f32>>();
        let (left, right) = (column(start_a >> 8, 7), column(start_b >> 8, 13));
        for (to, from) in [(a, &left), (b, &right)] {
            // SAFETY: both sides hold `ADD_ELEMENTS` floats.
            direct(pen, Call::MemcpyHtoD, 0, || unsafe {
                (entries.cuMemcpyHtoD_v2)(to, from.as_ptr().cast(), ADD_ELEMENTS * 4)
            })?;
        }
        let expected = left.iter().zip(&right).map(|(a, b)| a + b).collect();
        let schedule = Schedule { all: how == Verify::All, due: 0, last: 0, since: None, random: start_a };
        Ok(Checker { sum, expected, back: vec![0.0; ADD_ELEMENTS], schedule })
    }

    /// Whether this round is to be looked at.
    #[inline]
    pub fn is_due(&self, round: u64) -> bool {
        round >= self.schedule.due
    }

    /// Before the launch: puts poison where the sum is to appear.
    pub fn poison(&self, entries: &Entries, pen: &mut ThreadWriter) -> Result<(), Failed> {
        // SAFETY: the buffer holds `ADD_ELEMENTS` floats.
        direct(pen, Call::Memset, 0, || unsafe { (entries.cuMemsetD8_v2)(self.sum, POISON, ADD_ELEMENTS * 4) })
    }

    /// After the launch is done: reads the sum back and compares it.
    pub fn look(&mut self, module: u64, entries: &Entries, pen: &mut ThreadWriter) -> Result<Option<Wrong>, Failed> {
        let to = self.back.as_mut_ptr().cast();
        // SAFETY: both sides hold `ADD_ELEMENTS` floats.
        direct(pen, Call::MemcpyDtoH, 0, || unsafe { (entries.cuMemcpyDtoH_v2)(to, self.sum, ADD_ELEMENTS * 4) })?;
        let open = pen.enter(Call::Verify, module);
        let wrong = compare(&self.expected, &self.back);
        pen.leave(open, i32::from(wrong.is_some()));
        Ok(wrong)
    }

    /// Plans the next look: this round's took `cost`.
    pub fn looked(&mut self, round: u64, cost: Duration) {
        self.schedule.looked(round, cost, Instant::now());
    }
}

fn compare(expected: &[f32], got: &[f32]) -> Option<Wrong> {
    let differs = |(_, (expected, got)): &(usize, (&f32, &f32))| expected.to_bits() != got.to_bits();
    let mut wrong = expected.iter().zip(got).enumerate().filter(differs);
    let (index, (&expected, &got)) = wrong.next()?;
    Some(Wrong { index, expected, got, count: 1 + wrong.count() })
}

/// When to look.
struct Schedule {
    all: bool,
    /// First round that is looked at next.
    due: u64,
    /// The round of the last look.
    last: u64,
    /// When the last look was over.
    since: Option<Instant>,
    random: u64,
}

impl Schedule {
    fn looked(&mut self, round: u64, cost: Duration, now: Instant) {
        if self.all {
            return;
        }
        let gap = match self.since.replace(now) {
            None => SECOND_LOOK,
            Some(since) => {
                let rounds = (round - self.last).max(1) as u128;
                let plain = now.duration_since(since).saturating_sub(cost).as_nanos() / rounds;
                (cost.as_nanos() * u128::from(SHARE)).div_ceil(plain.max(1)).clamp(16, 1 << 40) as u64
            }
        };
        self.random = mix(self.random);
        // Between three quarters and five quarters of the gap.
        self.due = round + gap * 3 / 4 + self.random % (gap / 2).max(1);
        self.last = round;
    }
}

/// A well mixed number from any other (splitmix64, Steele and others 2014).
pub(super) fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told() {
        let expected = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(compare(&expected, &expected), None);
        let wrong = compare(&expected, &[1.0, 2.5, 3.0, f32::from_bits(u32::MAX)]).unwrap();
        assert_eq!(wrong, Wrong { index: 1, expected: 2.0, got: 2.5, count: 2 });
        assert!(wrong.describe().starts_with("element 1 is 2.5, expected 2"), "{}", wrong.describe());
        let untouched = Wrong { got: f32::from_bits(u32::MAX), ..wrong };
        assert!(untouched.describe().contains("poison"));
    }

    #[test]
    fn looks_cost_less_than_one_part_in_a_hundred() {
        let (round_ns, cost) = (5_000, Duration::from_micros(40));
        let mut schedule = Schedule { all: false, due: 0, last: 0, since: None, random: 1 };
        let (mut looks, mut now, rounds) = (0u32, Instant::now(), 1_000_000);
        for round in 0..rounds {
            now += Duration::from_nanos(round_ns);
            if round >= schedule.due {
                looks += 1;
                now += cost;
                schedule.looked(round, cost, now);
            }
        }
        let share = f64::from(looks) * cost.as_secs_f64() / (rounds as f64 * round_ns as f64 * 1e-9);
        assert!((0.004..0.01).contains(&share), "{share}");
    }

    #[test]
    fn a_look_at_every_round_is_due_at_every_round() {
        let mut schedule = Schedule { all: true, due: 0, last: 0, since: None, random: 1 };
        schedule.looked(7, Duration::from_secs(1), Instant::now());
        assert_eq!(schedule.due, 0);
    }
}
