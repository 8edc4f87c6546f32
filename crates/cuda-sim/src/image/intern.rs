//! Equal images are read once: a program that loads the same bytes a thousand times a second pays for one comparison.

use super::Image;
use crate::device::Device;
use crate::error::Answer;
use crate::lock::Lock;
use std::sync::{Arc, OnceLock};

/// How many different images are remembered.
const REMEMBERED: usize = 8;

struct Known {
    bytes: Box<[u8]>,
    image: Arc<Image>,
}

fn known() -> &'static Lock<Vec<Arc<Known>>> {
    static KNOWN: OnceLock<Lock<Vec<Arc<Known>>>> = OnceLock::new();
    KNOWN.get_or_init(|| Lock::new(Vec::new()))
}

/// The image that these bytes are.
pub fn intern(bytes: &[u8], device: &Device) -> Answer<Arc<Image>> {
    // Compared outside the lock: that is the long part.
    let candidates: Vec<Arc<Known>> =
        known().lock().iter().filter(|known| known.bytes.len() == bytes.len()).map(Arc::clone).collect();
    if let Some(found) = candidates.iter().find(|known| *known.bytes == *bytes) {
        return Ok(Arc::clone(&found.image));
    }
    let image = Arc::new(Image::read(bytes, device)?);
    let mut known = known().lock();
    // Another thread may have read the same bytes meanwhile: equal bytes are one image.
    if let Some(found) = known.iter().find(|known| *known.bytes == *bytes) {
        return Ok(Arc::clone(&found.image));
    }
    if known.len() == REMEMBERED {
        known.remove(0);
    }
    known.push(Arc::new(Known { bytes: bytes.into(), image: Arc::clone(&image) }));
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::PROFILES;

    #[test]
    fn equal_bytes_are_one_image_whichever_thread_reads_them_first() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cubins/ptx/add.sm_120.cubin");
        let bytes = std::fs::read(path).unwrap();
        let device = Device::new(&PROFILES[0], None).unwrap();
        let images: Vec<Arc<Image>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| intern(&bytes, &device).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(images.iter().all(|image| Arc::ptr_eq(image, &images[0])));
    }
}
