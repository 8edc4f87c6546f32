//! The one device: its name, architecture, memory and attributes.

use crate::memory::Memory;
use crate::profile::Profile;
use crate::queue::Queue;
use crate::settings::Setting;
use std::ffi::c_int;

/// An architecture, such as `sm_120`: 12 and 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch {
    /// The tens.
    pub major: u32,
    /// The last digit.
    pub minor: u32,
}

impl Arch {
    /// The architecture with this number, such as 120.
    pub fn from_number(number: u32) -> Arch {
        Arch { major: number / 10, minor: number % 10 }
    }

    /// Reads `sm_120`, `sm_90a`, `12.0` or `120`.
    pub fn parse(text: &str) -> Option<Arch> {
        if let Some((major, minor)) = text.split_once('.') {
            return Some(Arch { major: major.parse().ok()?, minor: minor.parse().ok()? });
        }
        let digits = text.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
        digits.parse().ok().filter(|number| (10..1000).contains(number)).map(Arch::from_number)
    }

    /// Whether code for `image` runs here: same major number and a minor one that is not above this device's.
    pub fn runs(self, image: Arch) -> bool {
        image.major == self.major && image.minor <= self.minor
    }
}

/// The simulated GPU.
pub struct Device {
    /// What `cuDeviceGetName` answers.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Number of multiprocessors.
    pub multiprocessors: c_int,
    /// Its memory.
    pub memory: Memory,
    /// What it has to do.
    pub queue: Queue,
}

impl Device {
    /// The device that a profile describes, its architecture replaced by what `CUDA_SIM_DEVICE` names.
    pub fn new(profile: &Profile, wanted: Option<&Setting>) -> Option<Device> {
        let arch = match wanted {
            Some(setting) => Arch::parse(&setting.name)?,
            None => profile.arch,
        };
        let name = if arch == profile.arch {
            profile.device_name.to_owned()
        } else {
            format!("cuda-sim device sm_{}{}", arch.major, arch.minor)
        };
        Some(Device {
            name,
            arch,
            multiprocessors: profile.multiprocessors,
            memory: Memory::new(profile.memory),
            queue: Queue::default(),
        })
    }

    /// A device attribute by its number in `cuda.h`; none where there is no such attribute.
    pub fn attribute(&self, number: c_int) -> Option<c_int> {
        match number {
            16 => Some(self.multiprocessors),
            75 => Some(self.arch.major as c_int),
            76 => Some(self.arch.minor as c_int),
            // Cluster launch and tensor maps came with compute capability 9.0.
            120 | 127 => Some(c_int::from(self.arch.major >= 9)),
            1..=ATTRIBUTE_LAST => {
                let known = ATTRIBUTES.binary_search_by_key(&number, |entry| entry.0);
                Some(known.map_or(0, |at| ATTRIBUTES[at].1))
            }
            _ => None,
        }
    }
}

/// The highest attribute number that this driver answers.
const ATTRIBUTE_LAST: c_int = 161;

/// Attributes that are not 0: limits of recent GPUs, in the units of `cuda.h`.
#[rustfmt::skip]
const ATTRIBUTES: &[(c_int, c_int)] = &[
    (1, 1024), (2, 1024), (3, 1024), (4, 64),        // threads a block; block x, y, z
    (5, i32::MAX), (6, 65_535), (7, 65_535),         // grid x, y, z
    (8, 49_152), (9, 65_536),                        // shared memory a block, constant memory
    (10, 32), (11, i32::MAX), (12, 65_536),          // warp, pitch, registers a block
    (13, 2_400_000), (14, 512), (15, 1), (19, 1),    // clock, texture alignment, overlap, can map host memory
    (30, 512), (31, 1), (33, 1),                     // surface alignment, concurrent kernels, PCI bus
    (36, 14_000_000), (37, 512), (38, 100_663_296),  // memory clock, bus width, L2
    (39, 1536), (40, 2), (41, 1), (51, 32),          // threads a multiprocessor, copy engines, unified addresses
    (78, 1), (79, 1), (80, 1), (81, 102_400), (82, 65_536),
    (90, 1), (95, 1), (97, 101_376), (106, 24), (111, 1024),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_read_in_every_spelling() {
        let arch = Some(Arch { major: 12, minor: 1 });
        assert_eq!((Arch::parse("sm_121"), Arch::parse("12.1"), Arch::parse("121")), (arch, arch, arch));
        assert_eq!(Arch::parse("sm_90a"), Some(Arch { major: 9, minor: 0 }));
        assert_eq!((Arch::parse("fast"), Arch::parse("sm_9")), (None, None));
    }

    #[test]
    fn code_runs_on_its_own_major_and_not_below_its_minor() {
        let device = Arch::from_number(86);
        assert!(device.runs(Arch::from_number(80)) && device.runs(device));
        assert!(!device.runs(Arch::from_number(89)) && !device.runs(Arch::from_number(90)));
    }

    #[test]
    fn the_attribute_table_is_in_order() {
        assert!(ATTRIBUTES.is_sorted_by_key(|entry| entry.0));
    }
}
