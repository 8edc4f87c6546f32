//! What the environment asks of this driver: `NAME[:key=value,...]` in `CUDA_SIM_BUG` and `CUDA_SIM_PROFILE`.

use std::str::FromStr;

/// A name and its keys, as written in a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// What stands before the colon.
    pub name: String,
    keys: Vec<(String, String)>,
}

impl Setting {
    /// Reads `NAME[:key=value,...]`; a key without a value counts as `1`.
    pub fn parse(text: &str) -> Setting {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let keys = rest
            .split(',')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "1")))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect();
        Setting { name: name.trim().to_owned(), keys }
    }

    /// Reads a variable of the environment; none where it is unset or empty.
    pub fn from_env(variable: &str) -> Option<Setting> {
        std::env::var(variable).ok().filter(|text| !text.trim().is_empty()).map(|text| Setting::parse(&text))
    }

    /// The value of `key` as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|pair| pair.0 == key).map(|pair| pair.1.as_str())
    }

    /// The value of `key`, or `default` where it is missing or not of this type.
    pub fn get<T: FromStr>(&self, key: &str, default: T) -> T {
        self.text(key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// Whether `key` is set to something other than 0.
    pub fn on(&self, key: &str) -> bool {
        self.text(key).is_some_and(|value| !matches!(value, "0" | "false" | "no"))
    }

    /// The first key that is not among `known`.
    pub fn unknown_key(&self, known: &[&str]) -> Option<&str> {
        self.keys.iter().map(|pair| pair.0.as_str()).find(|key| !known.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_defaults_kept() {
        let setting = Setting::parse("fail-context:k=3,of=8,all");
        assert_eq!(setting.name, "fail-context");
        assert_eq!((setting.get("k", 0u64), setting.get("of", 0u64), setting.get("code", 2)), (3, 8, 2));
        assert!(setting.on("all") && !setting.on("force"));
        assert_eq!(setting.unknown_key(&["k", "of"]), Some("all"));
    }

    #[test]
    fn a_bare_name_has_no_keys() {
        assert_eq!(Setting::parse("no-device"), Setting { name: "no-device".into(), keys: vec![] });
    }
}
