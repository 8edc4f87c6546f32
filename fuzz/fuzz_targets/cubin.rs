//! A cubin, with everything that a consumer does with it.
#![no_main]

use cubin_image::{Cubin, ImageKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    ImageKind::detect(data);
    let Ok(cubin) = Cubin::parse(data) else { return };
    cubin.compiler();
    cubin.languages();
    cubin.embedded_ptx(data);
    cubin.embedded_tile_ir(data);
    for kernel in &cubin.kernels {
        assert!(kernel.hidden_bytes() <= kernel.cbank_param_size);
        assert!(kernel.parameters.iter().map(|p| p.pointer()).count() <= data.len() / 16);
    }
    for section in &cubin.sections {
        assert!(section.data(data).len() <= data.len());
    }
    for path in &cubin.source_paths {
        let (start, end) = (path.offset as usize, (path.offset + path.size) as usize);
        assert!(start <= end && end <= data.len());
    }
    if let Some(host) = cubin.host_object() {
        let _ = host.link_at(0x5000_0000_0000);
    }
});
