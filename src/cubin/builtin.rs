//! The add kernel's images, inside the program: what is known to be good, and what a user without files can ask for by name.

/// One architecture's pair.
struct Pair {
    arch: u32,
    ptx: &'static [u8],
    tile: &'static [u8],
}

macro_rules! pairs {
    ($($arch:literal),+) => {
        &[$(Pair {
            arch: $arch,
            ptx: include_bytes!(concat!("../../cubins/ptx/add.sm_", $arch, ".cubin")),
            tile: include_bytes!(concat!("../../cubins/tile/add.sm_", $arch, ".cubin")),
        }),+]
    };
}

const PAIRS: &[Pair] = pairs!(80, 86, 89, 90, 100, 103, 120, 121);

/// The regular add kernel that runs on this architecture: the same major, and the highest minor not above it.
pub fn regular_add(arch: u32) -> Option<&'static [u8]> {
    let fits = PAIRS.iter().filter(|pair| pair.arch / 10 == arch / 10 && pair.arch <= arch);
    fits.max_by_key(|pair| pair.arch).map(|pair| pair.ptx)
}

/// The add kernel by tileiras for exactly this architecture: Tile images run on no other.
pub fn tile_add(arch: u32) -> Option<&'static [u8]> {
    PAIRS.iter().find(|pair| pair.arch == arch).map(|pair| pair.tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cubin_image::Cubin;

    #[test]
    fn a_regular_image_fits_upwards_within_its_major_and_a_tile_image_exactly() {
        let arch = |bytes: Option<&[u8]>| Cubin::parse(bytes.unwrap()).unwrap().arch;
        assert_eq!(arch(regular_add(87)), 86);
        assert_eq!(arch(regular_add(121)), 121);
        assert!(regular_add(75).is_none());
        assert_eq!(arch(tile_add(90)), 90);
        assert!(tile_add(87).is_none());
    }
}
