//! Profiles: which device is simulated, how long calls take, and how strictly images are judged (`CUDA_SIM_PROFILE`).
//!
//! A profile whose figures are guessed says so in its name and text; no speed under it is an expectation for a GPU.

use crate::device::Arch;
use crate::latency::Call;
use crate::settings::Setting;
use std::ffi::c_int;

/// Where an image for another architecture is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchCheck {
    /// When it is loaded.
    Load,
    /// When a kernel is looked up.
    Lookup,
}

/// A simulated machine.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a phrase.
    pub text: &'static str,
    /// The device's name.
    pub device_name: &'static str,
    /// The device's architecture.
    pub arch: Arch,
    /// The device's multiprocessors.
    pub multiprocessors: c_int,
    /// The device's memory, bytes.
    pub memory: u64,
    /// Median duration of a call, ns; calls that are not named take no extra time.
    pub latency: &'static [(Call, u32)],
    /// Spread of the durations: the standard deviation of their logarithm.
    pub spread: f64,
    /// Where images for another architecture are refused.
    pub arch_check: ArchCheck,
    /// Whether looking up a kernel that is not there fails at once; if not, its launch fails.
    pub strict_lookup: bool,
}

/// Keys that a profile takes.
const KEYS: &[&str] = &["arch-check", "lookup"];

/// All profiles; the first is the default.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "none",
        text: "as fast as it goes: no latency is added",
        device_name: "cuda-sim device sm_120",
        arch: Arch { major: 12, minor: 0 },
        multiprocessors: 170,
        memory: 32 << 30,
        latency: &[],
        spread: 0.0,
        arch_check: ArchCheck::Load,
        strict_lookup: true,
    },
    Profile {
        name: "rtx5090-guess",
        text: "guessed, not measured: the order of magnitude of calls on a large desktop GPU",
        device_name: "cuda-sim RTX 5090 (guess)",
        arch: Arch { major: 12, minor: 0 },
        multiprocessors: 170,
        memory: 32 << 30,
        latency: &[
            (Call::Load, 120_000),
            (Call::GetFunction, 800),
            (Call::Launch, 3_500),
            (Call::Sync, 2_500),
            (Call::Unload, 45_000),
            (Call::Copy, 9_000),
            (Call::Alloc, 60_000),
            (Call::Kernel, 4_000),
        ],
        spread: 0.25,
        arch_check: ArchCheck::Load,
        strict_lookup: true,
    },
];

impl Profile {
    /// The profile that a setting names, its keys applied; the text says what is wrong with it.
    pub fn choose(setting: Option<&Setting>) -> Result<Profile, String> {
        let Some(setting) = setting else { return Ok(PROFILES[0].clone()) };
        let mut profile = PROFILES
            .iter()
            .find(|profile| profile.name == setting.name)
            .ok_or_else(|| format!("there is no profile named '{}'", setting.name))?
            .clone();
        if let Some(key) = setting.unknown_key(KEYS) {
            return Err(format!("profile '{}' has no key '{key}'", setting.name));
        }
        profile.arch_check = match setting.text("arch-check") {
            None | Some("load") => ArchCheck::Load,
            Some("lookup") => ArchCheck::Lookup,
            Some(other) => return Err(format!("arch-check is 'load' or 'lookup', not '{other}'")),
        };
        profile.strict_lookup = match setting.text("lookup") {
            None | Some("strict") => true,
            Some("lenient") => false,
            Some(other) => return Err(format!("lookup is 'strict' or 'lenient', not '{other}'")),
        };
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_a_profile_and_mistakes_are_named() {
        let lenient = Profile::choose(Some(&Setting::parse("none:lookup=lenient,arch-check=lookup"))).unwrap();
        assert_eq!((lenient.strict_lookup, lenient.arch_check), (false, ArchCheck::Lookup));
        assert!(Profile::choose(Some(&Setting::parse("fast"))).unwrap_err().contains("'fast'"));
        assert!(Profile::choose(Some(&Setting::parse("none:lokup=strict"))).unwrap_err().contains("'lokup'"));
        assert!(Profile::choose(None).unwrap().latency.is_empty());
    }

    #[test]
    fn a_guessed_profile_says_so() {
        for profile in PROFILES.iter().filter(|profile| !profile.latency.is_empty()) {
            assert!(profile.name.ends_with("-guess") && profile.text.starts_with("guessed"), "{}", profile.name);
        }
    }
}
