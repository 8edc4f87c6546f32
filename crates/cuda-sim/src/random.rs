//! Small seeded random numbers: xorshift64*, one state a thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static SEED: AtomicU64 = AtomicU64::new(0x5eed);
static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Spreads the bits of a number (splitmix64's finaliser).
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sets the seed of the threads that draw for the first time from now on.
pub fn seed(value: u64) {
    SEED.store(mix(value), Ordering::Relaxed);
}

/// The seed in force, for choices that are made once a process.
pub fn seeded(salt: u64) -> u64 {
    mix(SEED.load(Ordering::Relaxed) ^ mix(salt))
}

/// The next number of this thread.
pub fn next() -> u64 {
    STATE
        .try_with(|state| {
            let mut x = state.get();
            if x == 0 {
                x = seeded(THREADS.fetch_add(1, Ordering::Relaxed)) | 1;
            }
            x ^= x >> 12;
            x ^= x << 25;
            x ^= x >> 27;
            state.set(x);
            x.wrapping_mul(0x2545_f491_4f6c_dd1d)
        })
        .unwrap_or(1)
}

/// True once in `n` on average; never where `n` is 0.
pub fn one_in(n: u64) -> bool {
    n != 0 && next().is_multiple_of(n)
}

/// A number in (0, 1).
pub fn unit() -> f64 {
    ((next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_ten_is_about_a_tenth() {
        let hits = (0..20_000).filter(|_| one_in(10)).count();
        assert!((1_700..2_300).contains(&hits), "{hits}");
        assert!(!one_in(0));
    }
}
