//! The driver's codes by name, and what to do about those that end a run: for where no driver can be asked.
//!
//! Names and numbers as in the public `cuda.h` (CUDA 13).

/// `CUDA_SUCCESS`.
pub const SUCCESS: i32 = 0;
/// `CUDA_ERROR_NO_BINARY_FOR_GPU`.
pub const NO_BINARY_FOR_GPU: i32 = 209;
/// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND`.
pub const JIT_COMPILER_NOT_FOUND: i32 = 221;

/// Codes in the order of their numbers.
const NAMES: &[(i32, &str)] = &[
    (0, "CUDA_SUCCESS"),
    (1, "CUDA_ERROR_INVALID_VALUE"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY"),
    (3, "CUDA_ERROR_NOT_INITIALIZED"),
    (4, "CUDA_ERROR_DEINITIALIZED"),
    (5, "CUDA_ERROR_PROFILER_DISABLED"),
    (34, "CUDA_ERROR_STUB_LIBRARY"),
    (36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (100, "CUDA_ERROR_NO_DEVICE"),
    (101, "CUDA_ERROR_INVALID_DEVICE"),
    (102, "CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (200, "CUDA_ERROR_INVALID_IMAGE"),
    (201, "CUDA_ERROR_INVALID_CONTEXT"),
    (202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (205, "CUDA_ERROR_MAP_FAILED"),
    (206, "CUDA_ERROR_UNMAP_FAILED"),
    (207, "CUDA_ERROR_ARRAY_IS_MAPPED"),
    (208, "CUDA_ERROR_ALREADY_MAPPED"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (210, "CUDA_ERROR_ALREADY_ACQUIRED"),
    (211, "CUDA_ERROR_NOT_MAPPED"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
    (218, "CUDA_ERROR_INVALID_PTX"),
    (219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (226, "CUDA_ERROR_CONTAINED"),
    (300, "CUDA_ERROR_INVALID_SOURCE"),
    (301, "CUDA_ERROR_FILE_NOT_FOUND"),
    (302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (304, "CUDA_ERROR_OPERATING_SYSTEM"),
    (400, "CUDA_ERROR_INVALID_HANDLE"),
    (401, "CUDA_ERROR_ILLEGAL_STATE"),
    (402, "CUDA_ERROR_LOSSY_QUERY"),
    (500, "CUDA_ERROR_NOT_FOUND"),
    (600, "CUDA_ERROR_NOT_READY"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
    (708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (710, "CUDA_ERROR_ASSERT"),
    (711, "CUDA_ERROR_TOO_MANY_PEERS"),
    (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (718, "CUDA_ERROR_INVALID_PC"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (800, "CUDA_ERROR_NOT_PERMITTED"),
    (801, "CUDA_ERROR_NOT_SUPPORTED"),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY"),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE"),
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (811, "CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (812, "CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (907, "CUDA_ERROR_CAPTURED_EVENT"),
    (909, "CUDA_ERROR_TIMEOUT"),
    (911, "CUDA_ERROR_EXTERNAL_DEVICE"),
    (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (999, "CUDA_ERROR_UNKNOWN"),
];

/// The code's name in `cuda.h`, where this list has it.
pub fn name(code: i32) -> Option<&'static str> {
    NAMES.binary_search_by_key(&code, |&(number, _)| number).ok().map(|at| NAMES[at].1)
}

/// Name and number, as people quote them: `CUDA_ERROR_NO_DEVICE (100)`, `error 4711`.
pub fn describe(code: i32) -> String {
    name(code).map_or_else(|| format!("error {code}"), |name| format!("{name} ({code})"))
}

/// Whether the context (or the whole driver) answers nothing but this code from now on: the device faulted, or the driver
/// has been torn down.
pub const fn is_sticky(code: i32) -> bool {
    matches!(code, 4 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810)
}

/// What is known when a hint is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation<'a> {
    /// The driver's version, such as `595.84`.
    pub driver_version: Option<&'a str>,
    /// The image is a Tile IR image (cubin or bytecode).
    pub tile: bool,
    /// The driver is the simulated one.
    pub simulated: bool,
}

/// What to do about a code that kept a run from beginning; none where there is nothing better to say than its name.
pub fn hint(code: i32, situation: Situation<'_>) -> Option<String> {
    let version = situation.driver_version.unwrap_or("<driver version>");
    Some(match code {
        2 => "the device has too little free memory: end other programs on it, or use fewer --threads".into(),
        3 | 34 => {
            "this libcuda is a stub or not brought up: take the toolkit's stubs folder out of LD_LIBRARY_PATH".into()
        }
        46 => "another process holds the device exclusively: see `nvidia-smi -q -d COMPUTE`".into(),
        100 => "no CUDA device: see `nvidia-smi`, the container's --gpus option and CUDA_VISIBLE_DEVICES; \
                without a GPU use --driver sim"
            .into(),
        101 => "no device of that number: see `nvidia-smi -L` and --device".into(),
        NO_BINARY_FOR_GPU if situation.tile => {
            "tile images run on exactly the architecture that they were compiled for: compile for this device".into()
        }
        NO_BINARY_FOR_GPU => "the image holds no code for this device's architecture: compile for this device".into(),
        218 => "the driver's compiler refuses this PTX".into(),
        JIT_COMPILER_NOT_FOUND if situation.tile => format!(
            "the driver's Tile IR compiler is missing: install libnvidia-tileiras.so.{version}, which must be of the \
             driver's own version"
        ),
        JIT_COMPILER_NOT_FOUND => format!(
            "the driver's PTX compiler is missing: install libnvidia-ptxjitcompiler.so.{version}, which must be of the \
             driver's own version"
        ),
        222 => "the PTX is newer than the driver: update the driver, or compile with an older toolkit".into(),
        223 => "the driver's JIT compiler is switched off: unset CUDA_DISABLE_PTX_JIT".into(),
        802 => "the system is still starting up: is nvidia-fabricmanager running?".into(),
        803 => "libcuda and the kernel module are of different versions: reboot, or load the module that fits".into(),
        804 => "the forward-compatibility libcuda does not support this device: use the driver's own libcuda".into(),
        805..=809 => "the MPS server cannot be used: see `nvidia-cuda-mps-control`".into(),
        999 if situation.simulated => "the simulated driver says on stderr what it does not know".into(),
        999 => "see the kernel's log (`dmesg | grep -i nvrm`); after a suspend reload nvidia_uvm".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn codes_are_quoted_with_name_and_number() {
        assert_eq!(describe(100), "CUDA_ERROR_NO_DEVICE (100)");
        assert_eq!(describe(4711), "error 4711");
    }

    #[test]
    fn a_missing_jit_library_is_named_with_the_drivers_version() {
        let tile = Situation { driver_version: Some("595.71.05"), tile: true, simulated: false };
        assert!(hint(221, tile).unwrap().contains("libnvidia-tileiras.so.595.71.05"));
        let ptx = Situation { tile: false, ..tile };
        assert!(hint(221, ptx).unwrap().contains("libnvidia-ptxjitcompiler.so.595.71.05"));
    }

    #[test]
    fn device_faults_are_sticky_and_refusals_are_not() {
        assert!([700, 716, 719].into_iter().all(is_sticky));
        assert!(![2, 209, 400, 500].into_iter().any(is_sticky));
    }
}
