//! Finds `libcuda.so.1` where the dynamic loader would, without loading it, and says whether this machine has an NVIDIA
//! device at all.

use std::fs;
use std::path::{Path, PathBuf};

/// The name under which every program asks for the driver.
const SONAME: &str = "libcuda.so.1";

/// Folders that hold the driver on some systems without being known to the loader: WSL, container toolkits, NixOS.
const COMMON: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/run/opengl-driver/lib",
    "/usr/lib64/nvidia",
    "/usr/lib/nvidia",
];

/// Every file that could be the driver, in the loader's order: `LD_LIBRARY_PATH`, the loader's cache, its own folders, then
/// folders that are common for this library.
pub(super) fn candidates() -> Vec<PathBuf> {
    let listed = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    // The loader also accepts semicolons.
    let listed = listed.to_string_lossy().into_owned();
    let mut found: Vec<PathBuf> = listed
        .split([':', ';'])
        .filter(|_| !listed.is_empty())
        .map(|folder| if folder.is_empty() { Path::new(".") } else { Path::new(folder) })
        .map(|folder| folder.join(SONAME))
        .collect();
    if let Ok(cache) = fs::read("/etc/ld.so.cache") {
        found.extend(in_cache(&cache, SONAME));
    }
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    for folder in ["/lib", "/usr/lib"] {
        found.push(Path::new(folder).join(&multiarch).join(SONAME));
    }
    for folder in ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].iter().chain(COMMON) {
        found.push(Path::new(folder).join(SONAME));
    }
    let mut seen = Vec::new();
    found.retain(|path| {
        let fresh = !seen.contains(path) && path.is_file();
        seen.push(path.clone());
        fresh
    });
    found
}

/// The files that the loader's cache names for `soname`, in its order.
///
/// Layout: `struct cache_file_new` and `struct file_entry_new` of glibc's `dl-cache.h`. Anything that does not fit it gives
/// an empty list.
fn in_cache(bytes: &[u8], soname: &str) -> Vec<PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    // An older cache may stand in front of the new one; offsets count from the new one's magic.
    let Some(start) = bytes.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let cache = &bytes[start..];
    let word = |at: usize| -> Option<usize> {
        let four = cache.get(at..at + 4)?;
        Some(u32::from_ne_bytes(four.try_into().ok()?) as usize)
    };
    let text = |at: usize| -> Option<&str> {
        let rest = cache.get(at..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    };
    let count = word(MAGIC.len()).unwrap_or(0).min(cache.len() / ENTRY);
    (0..count)
        .map(|index| HEADER + index * ENTRY)
        .filter(|&at| word(at + 4).and_then(text) == Some(soname))
        .filter_map(|at| word(at + 8).and_then(text))
        .map(PathBuf::from)
        .collect()
}

/// What shows that this machine has an NVIDIA device: a device node or a display controller of that vendor. None where
/// there is no sign of one.
pub(super) fn nvidia_device() -> Option<String> {
    let nodes = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu"];
    let drivers = fs::read_to_string("/proc/devices").ok();
    if let Some(node) = nodes.iter().find(|node| is_served(Path::new(node), drivers.as_deref())) {
        return Some(format!("device node {node}"));
    }
    if Path::new("/proc/driver/nvidia/version").exists() {
        return Some("kernel module nvidia".into());
    }
    let devices = fs::read_dir("/sys/bus/pci/devices").ok()?;
    devices.flatten().map(|device| device.path()).find_map(|device| {
        let read = |name: &str| fs::read_to_string(device.join(name)).unwrap_or_default();
        let display = read("vendor").trim() == "0x10de" && read("class").trim().starts_with("0x03");
        display.then(|| format!("PCI device {}", device.file_name().unwrap_or_default().to_string_lossy()))
    })
}

/// Whether a kernel driver stands behind a device node. NVIDIA's library makes its nodes itself, also where there is no
/// device, and leaves them: a node whose major number nothing has claimed says nothing.
fn is_served(node: &Path, drivers: Option<&str>) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let Ok(meta) = fs::metadata(node) else { return false };
    let major = rustix::fs::major(meta.rdev());
    meta.file_type().is_char_device() && drivers.is_none_or(|text| claims(text, major))
}

/// Whether `/proc/devices` lists a character driver for this major number.
fn claims(drivers: &str, major: u32) -> bool {
    let characters = drivers.lines().skip_while(|line| !line.starts_with("Character")).skip(1);
    let mut numbers = characters.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    numbers.any(|number| number.parse() == Ok(major))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of two entries behind `front` bytes of an older format.
    fn cache(front: usize, entries: &[(&str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut table = Vec::new();
        let base = 48 + entries.len() * 24;
        for (key, value) in entries {
            let mut put = |text: &str| {
                let at = (base + strings.len()) as u32;
                strings.extend_from_slice(text.as_bytes());
                strings.push(0);
                at
            };
            let (key, value) = (put(key), put(value));
            for word in [0x0303, key, value, 0, 0, 0] {
                table.extend_from_slice(&word.to_ne_bytes());
            }
        }
        let mut bytes = vec![7; front];
        bytes.extend_from_slice(b"glibc-ld.so.cache1.1");
        bytes.extend_from_slice(&(entries.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(&(strings.len() as u32).to_ne_bytes());
        bytes.resize(front + 48, 0);
        bytes.extend(table);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn the_loaders_cache_is_read_with_and_without_an_older_one_in_front() {
        let entries = [("libc.so.6", "/lib/libc.so.6"), (SONAME, "/opt/a/libcuda.so.1"), (SONAME, "/b/libcuda.so.1")];
        for front in [0, 32] {
            let found = in_cache(&cache(front, &entries), SONAME);
            assert_eq!(found, [PathBuf::from("/opt/a/libcuda.so.1"), PathBuf::from("/b/libcuda.so.1")]);
        }
    }

    #[test]
    fn a_damaged_cache_gives_nothing_and_does_not_panic() {
        let whole = cache(0, &[(SONAME, "/a/libcuda.so.1")]);
        for length in 0..whole.len() {
            in_cache(&whole[..length], SONAME);
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            in_cache(&bytes, SONAME);
        }
        assert_eq!(in_cache(b"", SONAME), Vec::<PathBuf>::new());
    }

    #[test]
    fn this_machines_cache_names_its_c_library() {
        let Ok(bytes) = fs::read("/etc/ld.so.cache") else { return };
        if bytes.windows(20).any(|window| window == b"glibc-ld.so.cache1.1") {
            assert!(!in_cache(&bytes, "libc.so.6").is_empty());
        }
    }

    #[test]
    fn a_node_counts_only_where_a_driver_has_claimed_its_number() {
        let drivers = "Character devices:\n  1 mem\n195 nvidia\n\nBlock devices:\n  7 loop\n";
        assert!(claims(drivers, 195) && claims(drivers, 1));
        assert!(!claims(drivers, 7) && !claims(drivers, 19) && !claims("", 195));
        assert!(is_served(Path::new("/dev/null"), Some(drivers)));
        assert!(!is_served(Path::new("/dev/null"), Some("Character devices:\n  4 tty\n")));
    }
}
