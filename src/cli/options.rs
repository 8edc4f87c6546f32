//! The options of a run, each defined once: on the command line, in the environment (`STRESS_*`) and in a TOML file.
//!
//! Every field is optional here; [`Options::over`] lays one source over another, and `run.rs` fills the defaults in.

use crate::cubin::sources::SourceKind;
use crate::plan::{ApiStyle, Spread, Verify};
use crate::plan::{
    Argument, ContextKind, Dim3, JournalKind, LockKind, Observe, Op, ResourceLimit, Steering, SyncPlace,
};
use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Declares the options struct once, with the laying of one source over another.
macro_rules! options {
    ($($(#[$meta:meta])* $field:ident : $type:ty),+ $(,)?) => {
        /// What can be said about a run.
        #[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
        pub struct Options {
            $($(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>),+
        }

        impl Options {
            /// Names of the fields, as they stand in a TOML file.
            pub fn names() -> Vec<String> {
                vec![$(stringify!($field).replace('_', "-")),+]
            }

            /// These options, and where they say nothing, those of `below`.
            pub fn over(self, below: Options) -> Options {
                Options { $($field: self.$field.or(below.$field)),+ }
            }

            /// Whether the field of this name says anything.
            pub fn says(&self, name: &str) -> bool {
                match name.replace('-', "_").as_str() {
                    $(stringify!($field) => self.$field.is_some(),)+
                    _ => false,
                }
            }
        }
    };
}

options! {
    /// Driver library: auto, real, sim, or a file [default: auto]
    #[arg(long, value_name = "auto|real|sim|PATH", env = "STRESS_DRIVER")]
    driver: String,
    /// Which device [default: 0]
    #[arg(long, value_name = "N", env = "STRESS_DEVICE")]
    device: i32,
    /// Threads on the context [default: 2]
    #[arg(long, value_name = "N", env = "STRESS_THREADS")]
    threads: usize,
    /// One module in N is kept for the child's life; 0 keeps none, 1 all [default: 4]
    #[arg(long, value_name = "N", env = "STRESS_KEEP")]
    keep: u64,
    /// Kernel to launch [default: the image's only kernel, or repro_kernel]
    #[arg(long, value_name = "NAME", env = "STRESS_KERNEL")]
    kernel: String,
    /// Grid in blocks: X[,Y[,Z]] [default: 1,1,1]
    #[arg(long, value_name = "X,Y,Z", value_parser = dim3, env = "STRESS_GRID")]
    grid: Dim3,
    /// Block in threads [default: what the image requires, else 1,1,1]
    #[arg(long, value_name = "X,Y,Z", value_parser = dim3, env = "STRESS_BLOCK")]
    block: Dim3,
    /// Kernel arguments, such as 'ptr:65536, i32:128, f32:1.5, zero:16', a .toml file with a list `args`, or auto [default: auto]
    #[arg(long, value_name = "LIST", env = "STRESS_ARGS")]
    args: String,
    /// Whose context: created, primary, per-thread [default: created]
    #[arg(long, value_name = "KIND", value_parser = word::<ContextKind>, env = "STRESS_CONTEXT")]
    context: ContextKind,
    /// Where to wait for the device: before-unload, none [default: before-unload]
    #[arg(long, value_name = "PLACE", value_parser = word::<SyncPlace>, env = "STRESS_SYNC")]
    sync: SyncPlace,
    /// Calls that a lock keeps apart: none, unload, all [default: none]
    #[arg(long, value_name = "CALLS", value_parser = word::<LockKind>, env = "STRESS_LOCK")]
    lock: LockKind,
    /// Entry points: module, library [default: module]
    #[arg(long, value_name = "STYLE", value_parser = word::<ApiStyle>, env = "STRESS_API")]
    api: ApiStyle,
    /// Which results to check: off, sampled, all [default: sampled]
    #[arg(long, value_name = "WHICH", value_parser = word::<Verify>, env = "STRESS_VERIFY")]
    verify: Verify,
    /// How calls are brought together: free [default: free]
    #[arg(long, value_name = "NAME", value_parser = word::<Steering>, env = "STRESS_STEER")]
    steer: Steering,
    /// What the images are: cubin, fatbin, ptx, tile-bytecode, cu, cutile, directory, built-in [default: guessed]
    #[arg(long, value_name = "KIND", value_parser = word::<SourceKind>, env = "STRESS_SOURCE")]
    source: SourceKind,
    /// Which of a folder's images a thread loads: same (each image is an arm), per-thread, random [default: same]
    #[arg(long, value_name = "HOW", value_parser = word::<Spread>, env = "STRESS_SPREAD")]
    spread: Spread,
    /// Compare each Tile image with its regular twin as well
    #[arg(long, num_args = 0, default_missing_value = "true")]
    with_twin: bool,
    /// Compare each Tile image with all of its variants as well (see `stress variants`)
    #[arg(long, num_args = 0, default_missing_value = "true")]
    with_variants: bool,
    /// Python interpreter whose environment has cuda-tile, and compilers [default: python3 in PATH]
    #[arg(long, value_name = "PATH", env = "STRESS_PYTHON")]
    python: PathBuf,
    /// Seed of everything random [default: from the clock]
    #[arg(long, value_name = "N", env = "STRESS_SEED")]
    seed: u64,
    /// Stop after N faults
    #[arg(long, value_name = "N", env = "STRESS_MAX_FAULTS")]
    max_faults: u64,
    /// Stop after N children
    #[arg(long, value_name = "N", env = "STRESS_TRIALS")]
    trials: u64,
    /// A driver call open for this long is a hang [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = super::span::value, env = "STRESS_HANG_AFTER")]
    hang_after: f64,
    /// Longest life of one child [default: 60s; compared images: 2s]
    #[arg(long, value_name = "SPAN", value_parser = super::span::value, env = "STRESS_LIFE")]
    life: f64,
    /// How closely children are watched: none, light, full [default: full]
    #[arg(long, value_name = "HOW", value_parser = word::<Observe>, env = "STRESS_OBSERVE")]
    observe: Observe,
    /// Calls that are kept: ring (the last ones), full (all, on disk) [default: ring]
    #[arg(long, value_name = "HOW", value_parser = word::<JournalKind>, env = "STRESS_JOURNAL")]
    journal: JournalKind,
    /// Try a known good image after each lost child: on, off [default: on]
    #[arg(long, value_name = "on|off", value_parser = on_off, env = "STRESS_GATE")]
    gate: bool,
    /// Write a core file of each fault
    #[arg(long, num_args = 0, default_missing_value = "true")]
    core: bool,
    /// Limit a child's resource, such as nofile=256 (repeatable)
    #[arg(long, value_name = "NAME=N", value_parser = rlimit, num_args = 1)]
    rlimit: Vec<ResourceLimit>,
    /// How sure a difference between arms must be; the run ends when it is [default: 0.99]
    #[arg(long, value_name = "P", value_parser = confidence, env = "STRESS_CONFIDENCE")]
    confidence: f64,
    /// Fewest overlaps (or launches, where the plan allows no overlap) for a run without a fault to pass [default: 100]
    #[arg(long, value_name = "N", env = "STRESS_EXPOSURE_FLOOR")]
    exposure_floor: u64,
    /// Folder for results [default: results]
    #[arg(long, value_name = "DIR", env = "STRESS_OUT")]
    out: PathBuf,
    /// Plant a bug in the simulated driver (see `stress sim bugs`)
    #[arg(long, value_name = "NAME[:K=V,...]", env = "CUDA_SIM_BUG")]
    sim_bug: String,
    /// Latency profile of the simulated driver (see `stress sim profiles`)
    #[arg(long, value_name = "NAME[:K=V,...]", env = "CUDA_SIM_PROFILE")]
    sim_profile: String,
    /// Architecture of the simulated device [default: the image's]
    #[arg(long, value_name = "sm_NN", env = "CUDA_SIM_DEVICE")]
    sim_device: String,
    /// An exact sequence of calls to do instead of the loop (TOML only: [[op]])
    #[arg(skip)]
    op: Vec<Op>,
    /// Images (TOML only; on the command line they are positional)
    #[arg(skip)]
    image: Vec<PathBuf>,
    /// How long to go on, seconds (TOML only; on the command line it is positional)
    #[arg(skip)]
    seconds: f64,
}

/// Reads a word of one of the plan's enums, by the name that serde knows.
pub fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|e| {
        // "unknown variant `x`, expected one of `a`, `b`" says what a user needs to know.
        e.to_string()
    })
}

fn confidence(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|p| (0.5..=0.999_999).contains(p));
    value.ok_or_else(|| format!("`{text}` is not between 0.5 and 0.999999"))
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

fn dim3(text: &str) -> Result<Dim3, String> {
    let parts: Vec<u32> = text
        .split([',', 'x'])
        .map(|part| part.trim().parse().ok().filter(|&n| n > 0))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("`{text}` is not X[,Y[,Z]] of positive numbers"))?;
    match parts[..] {
        [x] => Ok(Dim3(x, 1, 1)),
        [x, y] => Ok(Dim3(x, y, 1)),
        [x, y, z] => Ok(Dim3(x, y, z)),
        _ => Err(format!("`{text}` has more than three dimensions")),
    }
}

fn rlimit(text: &str) -> Result<ResourceLimit, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=N")?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
    let name = name.trim_start_matches("RLIMIT_").to_ascii_lowercase();
    Ok(ResourceLimit { name, value })
}

/// Reads what `--args` says: none for `auto`, a list from a file that ends in `.toml`, else a list of words.
pub fn argument_list(text: &str) -> Result<Option<Vec<Argument>>, String> {
    /// `args = [{ type = "ptr", bytes = 65536 }, { type = "i32", value = 128 }]`
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        args: Vec<Argument>,
    }
    match text.trim() {
        "auto" => Ok(None),
        path if path.ends_with(".toml") => {
            let bytes = crate::cubin::read_file(path.as_ref()).map_err(|e| e.to_string())?;
            let text = String::from_utf8(bytes).map_err(|e| format!("{path}: {e}"))?;
            let file: File = toml::from_str(&text).map_err(|e| format!("{path}: {}", e.to_string().trim_end()))?;
            Ok(Some(file.args))
        }
        words => arguments(words).map(Some),
    }
}

/// Reads kernel arguments: `ptr:BYTES`, `i32:N`, `i64:N`, `f32:X`, `f64:X`, `zero:BYTES`, separated by commas.
fn arguments(text: &str) -> Result<Vec<Argument>, String> {
    text.split(',').map(|part| argument(part.trim())).collect()
}

fn argument(text: &str) -> Result<Argument, String> {
    let (kind, value) = text.split_once(':').ok_or_else(|| format!("`{text}` is not TYPE:VALUE"))?;
    let bad = || format!("`{value}` is not a value for {kind}");
    fn number<T: std::str::FromStr>(value: &str, bad: impl Fn() -> String) -> Result<T, String> {
        value.trim().parse().map_err(|_| bad())
    }
    match kind.trim() {
        "ptr" => Ok(Argument::Ptr { bytes: number(value, bad)? }),
        "i32" => Ok(Argument::I32 { value: number(value, bad)? }),
        "i64" => Ok(Argument::I64 { value: number(value, bad)? }),
        // Plans travel as JSON, which has no infinity and no NaN.
        "f32" => number(value, bad)
            .and_then(|v: f32| if v.is_finite() { Ok(Argument::F32 { value: v }) } else { Err(bad()) }),
        "f64" => number(value, bad)
            .and_then(|v: f64| if v.is_finite() { Ok(Argument::F64 { value: v }) } else { Err(bad()) }),
        "zero" => match number(value, bad)? {
            bytes @ 1..=65536 => Ok(Argument::Zero { bytes }),
            _ => Err("zero: takes 1 to 65536 bytes".to_owned()),
        },
        other => Err(format!("`{other}` is not one of ptr, i32, i64, f32, f64, zero")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_source_wins_and_the_lower_fills_in() {
        let upper = Options { threads: Some(8), ..Options::default() };
        let lower = Options { threads: Some(2), keep: Some(0), ..Options::default() };
        let both = upper.over(lower);
        assert_eq!((both.threads, both.keep), (Some(8), Some(0)));
        assert!(both.says("threads") && !both.says("hang-after"));
        assert!(Options::names().contains(&"hang-after".to_owned()));
    }

    #[test]
    fn words_dimensions_limits_and_arguments() {
        assert_eq!(word::<ContextKind>("per-thread"), Ok(ContextKind::PerThread));
        assert!(word::<ContextKind>("mine").unwrap_err().contains("primary"));
        assert_eq!(dim3("2,3"), Ok(Dim3(2, 3, 1)));
        assert!(dim3("0").is_err() && dim3("1,2,3,4").is_err() && dim3("").is_err());
        assert_eq!(rlimit("nofile=256").unwrap().value, 256);
        let args = arguments("ptr:65536, i32:128, f32:1.5, zero:16").unwrap();
        assert_eq!(args.len(), 4);
        assert_eq!(args[3], Argument::Zero { bytes: 16 });
        assert!(arguments("ptr:").is_err() && arguments("u8:1").is_err() && arguments("zero:0").is_err());
    }

    #[test]
    fn arguments_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("args.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            argument_list(path.to_str().unwrap())
        };
        let list = read("args = [{ type = \"ptr\", bytes = 64 }, { type = \"f32\", value = 1.5 }]").unwrap().unwrap();
        assert_eq!(list, [Argument::Ptr { bytes: 64 }, Argument::F32 { value: 1.5 }]);
        let error = read("args = [{ type = \"ptr\" }]").unwrap_err();
        assert!(error.contains("args.toml") && error.contains("bytes"), "{error}");
        assert_eq!(argument_list("auto"), Ok(None));
        assert!(argument_list("/nonexistent/args.toml").is_err());
    }
}
