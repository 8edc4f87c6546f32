//! What kind of module a file is, by its name and by what is known of this run.

use crate::vocabulary::Place;
use std::path::{Path, PathBuf};

/// What is known beforehand of the programs and libraries of a run.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The driver library that was chosen, whatever its name; symbolic links resolved.
    pub driver: Option<PathBuf>,
    /// This tool's own program, where the child is our worker.
    pub worker: Option<PathBuf>,
}

/// Names that the GPU vendor's other libraries begin with.
const VENDOR: [&str; 18] = [
    "libnvidia-",
    "libcudart",
    "libnvrtc",
    "libnvJitLink",
    "libnvptxcompiler",
    "libnvvm",
    "libnvfatbin",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libnccl",
    "libnvToolsExt",
    "libcupti",
    "libcudadebugger",
];

/// Names of the C library's parts, up to the version.
const LIBC: [&str; 7] = ["libc", "libm", "libpthread", "libdl", "librt", "libresolv", "libutil"];

impl Known {
    /// The place of a mapped file's code.
    pub fn place(&self, path: &str) -> Place {
        if path == "[vdso]" {
            return Place::Libc;
        }
        if self.driver.as_deref().is_some_and(|driver| driver == Path::new(path)) {
            return Place::Libcuda;
        }
        if self.worker.as_deref().is_some_and(|worker| worker == Path::new(path)) {
            return Place::Worker;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split(".so").next().unwrap_or(name);
        let is_library = name.contains(".so");
        match name {
            _ if !is_library => Place::Program,
            _ if stem == "libcuda" => Place::Libcuda,
            _ if VENDOR.iter().any(|prefix| name.starts_with(prefix)) => Place::Vendor,
            _ if stem.starts_with("ld-linux") || stem.starts_with("ld-musl") => Place::Loader,
            // Older glibc installs libc-2.31.so.
            _ if LIBC.iter().any(|lib| stem == *lib || is_versioned(stem, lib)) => Place::Libc,
            _ if is_versioned(stem, "ld") => Place::Loader,
            _ => Place::Program,
        }
    }
}

fn is_versioned(stem: &str, library: &str) -> bool {
    let rest = stem.strip_prefix(library).and_then(|rest| rest.strip_prefix("-2."));
    rest.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_placed_by_name() {
        let known = Known { driver: Some("/x/renamed.so".into()), worker: Some("/x/stress".into()) };
        let cases = [
            ("/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01", Place::Libcuda),
            ("/x/renamed.so", Place::Libcuda),
            ("/x/stress", Place::Worker),
            ("/usr/lib/libcudart.so.12", Place::Vendor),
            ("/usr/lib/libnvidia-ptxjitcompiler.so.1", Place::Vendor),
            ("/lib/libc.so.6", Place::Libc),
            ("/lib/libc-2.31.so", Place::Libc),
            ("/lib/ld-2.31.so", Place::Loader),
            ("/lib64/ld-linux-x86-64.so.2", Place::Loader),
            ("[vdso]", Place::Libc),
            ("/opt/libcustom.so", Place::Program),
            ("/opt/app", Place::Program),
            ("/opt/libc-tools.so", Place::Program),
        ];
        for (path, place) in cases {
            assert_eq!(known.place(path), place, "{path}");
        }
    }
}
