//! Puts the simulated driver inside the program: finds the shared object that `crates/cuda-sim-so` was built into, copies
//! it to where `src/driver/embedded.rs` includes it, and writes down what it offers.

use cuda_sim_so::{FILE_VERSION, STAMP, catalogue};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const LIBRARY: &str = "libcuda_sim_so";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library =
        find(&out).unwrap_or_else(|| panic!("no {LIBRARY}*.so with the stamp {STAMP} near {}", out.display()));
    fs::copy(library, out.join("libcuda_sim.so")).expect("the shared object can be copied");
    fs::write(out.join("catalogue.rs"), list()).expect("the catalogue can be written");
}

/// Looks in all folders where cargo may put the file: beside this package's output, one level higher (a build for a named
/// target keeps what runs on the host elsewhere), and in the layout with one folder a unit.
fn find(out: &Path) -> Option<PathBuf> {
    let ancestors: Vec<&Path> = out.ancestors().collect();
    let mut profiles: Vec<PathBuf> = [3, 4].iter().filter_map(|&n| ancestors.get(n)).map(PathBuf::from).collect();
    for folder in profiles.clone() {
        if let (Some(above), Some(name)) = (folder.parent().and_then(Path::parent), folder.file_name()) {
            profiles.push(above.join(name));
        }
    }
    let candidates = profiles.iter().flat_map(|profile| {
        let units = list_folder(&profile.join("build")).into_iter().flat_map(|package| list_folder(&package));
        list_folder(&profile.join("deps")).into_iter().chain(units.flat_map(|unit| list_folder(&unit.join("out"))))
    });
    candidates.filter(|path| is_library(path)).find(|path| carries_stamp(path))
}

fn list_folder(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    name.starts_with(LIBRARY) && name.ends_with(".so")
}

fn carries_stamp(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.windows(STAMP.len()).any(|window| window == STAMP.as_bytes()))
}

/// The catalogue as Rust source: the driver itself is not part of the program, only its file is.
fn list() -> String {
    let mut text = format!("const FILE_VERSION: &str = {FILE_VERSION:?};\nconst BUGS: &[Bug] = &[\n");
    let pairs = |keys: &[(&str, &str)]| format!("&{keys:?}");
    for bug in catalogue::bugs() {
        let catalogue::BugEntry { name, text: what, owner, kind, keys } = bug;
        let keys = pairs(keys);
        writeln!(text, "Bug {{ name: {name:?}, text: {what:?}, owner: {owner:?}, kind: {kind:?}, keys: {keys} }},")
            .expect("a string takes everything");
    }
    text.push_str("];\nconst PROFILES: &[Profile] = &[\n");
    for profile in catalogue::profiles() {
        let keys = pairs(catalogue::PROFILE_KEYS);
        writeln!(text, "Profile {{ name: {:?}, text: {:?}, keys: {keys} }},", profile.name, profile.text)
            .expect("a string takes everything");
    }
    text.push_str("];\n");
    text
}
