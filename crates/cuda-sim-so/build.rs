//! Names the shared object as the real one is named, strips it as the real one is stripped, and stamps it.

use std::hash::{DefaultHasher, Hash, Hasher};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for argument in ["-soname,libcuda.so.1", "--build-id=sha1", "--strip-all"] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{argument}");
    }
    // Where and how this unit is built tells it from every other unit in the same target folder.
    let mut hasher = DefaultHasher::new();
    for variable in ["OUT_DIR", "PROFILE", "OPT_LEVEL", "TARGET", "HOST"] {
        std::env::var(variable).unwrap_or_default().hash(&mut hasher);
    }
    println!("cargo::rustc-env=CUDA_SIM_STAMP=cuda-sim-stamp-{:016x}", hasher.finish());
}
