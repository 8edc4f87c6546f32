//! What this driver offers, as data for whoever lists it: planted bugs with their owners, and profiles.

/// A planted bug.
pub struct BugEntry {
    /// Its name in `CUDA_SIM_BUG`.
    pub name: &'static str,
    /// What goes wrong.
    pub text: &'static str,
    /// Whose fault it is, in the vocabulary of the results.
    pub owner: &'static str,
    /// What kind of fault it is.
    pub kind: &'static str,
    /// The keys that it takes, with what they mean.
    pub keys: &'static [(&'static str, &'static str)],
}

/// A profile.
pub struct ProfileEntry {
    /// Its name in `CUDA_SIM_PROFILE`.
    pub name: &'static str,
    /// What it is.
    pub text: &'static str,
}

/// All planted bugs, by name.
pub fn bugs() -> Vec<BugEntry> {
    crate::bugs::CATALOGUE.iter().map(|plan| plan.entry()).collect()
}

/// All profiles, the default first.
pub fn profiles() -> Vec<ProfileEntry> {
    crate::profile::PROFILES.iter().map(|profile| ProfileEntry { name: profile.name, text: profile.text }).collect()
}

/// The keys that every profile takes, with what they mean.
pub const PROFILE_KEYS: &[(&str, &str)] = &[
    ("arch-check", "load|lookup: where an image for another architecture is refused"),
    ("lookup", "strict|lenient: whether looking up a kernel that is not there fails, or its launch"),
];

/// Names of all exported entry points.
pub fn entry_points() -> Vec<&'static str> {
    crate::entry::proc_address::symbols().collect()
}
