//! NVIDIA's Python bindings (PyPI: `cuda-bindings`) load an image, launch it, read the sums and unload it.

use crate::program::{image, library, root};
use std::path::Path;
use std::process::Command;

#[test]
fn the_python_bindings_load_launch_and_unload() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-bindings");
    let made = Command::new(root().join("scripts/cuda-bindings-env")).arg(&folder).output();
    let python = match made {
        Ok(made) if made.status.success() => folder.join("bin/python"),
        Ok(made) => {
            println!("skipped: {}", String::from_utf8_lossy(&made.stderr).trim());
            return;
        }
        Err(error) => {
            println!("skipped: scripts/cuda-bindings-env: {error}");
            return;
        }
    };
    for (name, block) in [("tile/add.sm_120.cubin", "1"), ("ptx/add.sm_120.cubin", "128")] {
        let mut command = Command::new(&python);
        command.arg(root().join("tests/sim/programs/bindings.py")).arg(image(name)).arg(block);
        command.env("LD_LIBRARY_PATH", library()).env("CUDA_SIM_DEVICE", "sm_120");
        command.env_remove("CUDA_SIM_BUG").env_remove("CUDA_SIM_PROFILE").env_remove("PYTHONPATH");
        let ended = command.output().expect("python can be started");
        let text = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(
            text,
            "sums right\nstale 400 CUDA_ERROR_INVALID_HANDLE\nlibrary kernel repro_kernel sums right\ndone\n"
        );
    }
}
