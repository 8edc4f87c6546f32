//! The words that every room uses, once each: owners, places, phases, kinds, confidence, and the driver calls.
//!
//! Knows nothing else. The names that serde writes are public (they stand in `summary.json`) and change only with the
//! schema's number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares an enum of public words: `snake_case` in JSON, the same word when displayed.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The public word for this value.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.word()) }
        }
    };
}

words! {
    /// Whose fault it is.
    Owner {
        /// The CUDA driver.
        Driver = "driver",
        /// What the Tile IR compiler emitted, host code or device code.
        CudaTile = "cuda_tile",
        /// The program that called the driver.
        Application = "application",
        /// Heap corruption whose author is unknown: detected in libc, not caused by it.
        Libc = "libc",
        /// The GPU itself.
        Device = "device",
        /// What the run stands on: no usable driver, a missing library, a wrong architecture.
        Environment = "environment",
        /// This tool, or the plan that it was given.
        Harness = "harness",
        /// Nothing went wrong.
        None = "none",
        /// The evidence does not separate the candidates.
        Insufficient = "insufficient",
    }
}

words! {
    /// Where an address lies.
    Place {
        /// The CUDA driver library.
        Libcuda = "libcuda",
        /// Another library of the GPU's vendor (runtime, JIT compilers).
        Vendor = "vendor",
        /// Host code that the Tile IR compiler put into an image.
        HostObject = "host_object",
        /// Where such host code was mapped earlier and no longer is.
        HostObjectUnmapped = "host_object_unmapped",
        /// The C library.
        Libc = "libc",
        /// The dynamic loader.
        Loader = "loader",
        /// The program under test and its own libraries.
        Program = "program",
        /// This tool's own worker.
        Worker = "worker",
        /// Executable memory of no file and no known image.
        Anonymous = "anonymous",
        /// Nothing is mapped there, nor is it known to have been.
        Unmapped = "unmapped",
    }
}

words! {
    /// What the process was doing.
    Phase {
        /// Before the first module call.
        Startup = "startup",
        /// Loading a module or library.
        Load = "load",
        /// Looking a kernel up.
        GetFunction = "get_function",
        /// Launching.
        Launch = "launch",
        /// Waiting for the device.
        Sync = "sync",
        /// Unloading a module or library.
        Unload = "unload",
        /// Giving contexts, streams and memory back.
        Teardown = "teardown",
        /// In the program, outside the driver.
        Main = "main",
        /// After `main`: an `atexit` handler or a static object's destructor.
        ExitHandler = "exit_handler",
        /// After `main`: the destructor of a thread-local object.
        TlsDestructor = "tls_destructor",
        /// After `main`: a library's finaliser.
        LibraryFini = "library_fini",
        /// In a compiler that was started to make an image.
        Compile = "compile",
    }
}

words! {
    /// What kind of fault it is.
    Kind {
        /// The process died of a signal.
        Crash = "crash",
        /// It stopped making progress.
        Hang = "hang",
        /// A launch succeeded and its result is wrong.
        WrongResult = "wrong_result",
        /// A driver call answered with an error.
        ApiError = "api_error",
        /// Something is lost with each load.
        Leak = "leak",
        /// Calls become slower with time.
        Slowdown = "slowdown",
        /// A fault whose exit status says otherwise.
        Masked = "masked",
        /// A compiler crashed or hung.
        Compiler = "compiler",
    }
}

words! {
    /// How sure an attribution is.
    Confidence {
        /// By the place alone.
        Suspected = "suspected",
        /// By the place and a legal journal, or one contrast.
        Likely = "likely",
        /// By the place, a legal journal and a contrast that chance does not explain.
        Established = "established",
    }
}

/// Declares [`Call`] with its driver entry point and its phase.
macro_rules! calls {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $entry:literal, $phase:ident;)+) => {
        /// A call that the journal can name: a driver entry point, or a step of the worker's own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum Call { $($(#[$doc])* $variant = $number),+ }

        impl Call {
            /// Every call, in the order of its number.
            pub const ALL: &'static [Call] = &[$(Call::$variant),+];

            /// The call with this number in the journal, if there is one.
            pub const fn from_number(number: u8) -> Option<Call> {
                match number { $($number => Some(Call::$variant),)+ _ => None }
            }

            /// The driver's entry point, or `worker:STEP` for a step of the worker's own.
            pub const fn entry(self) -> &'static str { match self { $(Call::$variant => $entry),+ } }

            /// The phase in which a fault inside this call happened.
            pub const fn phase(self) -> Phase { match self { $(Call::$variant => Phase::$phase),+ } }
        }

        impl fmt::Display for Call {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.entry()) }
        }
    };
}

calls! {
    /// Brings the driver up.
    Init = 1, "cuInit", Startup;
    /// Reads the driver's version.
    DriverGetVersion = 2, "cuDriverGetVersion", Startup;
    /// Counts or opens a device, or reads its properties.
    DeviceGet = 3, "cuDeviceGet", Startup;
    /// Makes a context.
    CtxCreate = 4, "cuCtxCreate_v2", Startup;
    /// Takes the primary context.
    PrimaryCtxRetain = 5, "cuDevicePrimaryCtxRetain", Startup;
    /// Binds a context to the calling thread.
    CtxSetCurrent = 6, "cuCtxSetCurrent", Startup;
    /// Allocates device memory.
    MemAlloc = 7, "cuMemAlloc_v2", Startup;
    /// Fills device memory.
    Memset = 8, "cuMemsetD8_v2", Startup;
    /// Copies to the device.
    MemcpyHtoD = 9, "cuMemcpyHtoD_v2", Main;
    /// Copies from the device.
    MemcpyDtoH = 10, "cuMemcpyDtoH_v2", Main;
    /// Makes a stream.
    StreamCreate = 11, "cuStreamCreate", Startup;
    /// Loads a module.
    Load = 12, "cuModuleLoadData", Load;
    /// Looks a kernel up in a module.
    GetFunction = 13, "cuModuleGetFunction", GetFunction;
    /// Launches a kernel.
    Launch = 14, "cuLaunchKernel", Launch;
    /// Waits for a context.
    Sync = 15, "cuCtxSynchronize", Sync;
    /// Unloads a module.
    Unload = 16, "cuModuleUnload", Unload;
    /// Waits for a stream.
    StreamSync = 17, "cuStreamSynchronize", Sync;
    /// Destroys a stream.
    StreamDestroy = 18, "cuStreamDestroy_v2", Teardown;
    /// Frees device memory.
    MemFree = 19, "cuMemFree_v2", Teardown;
    /// Destroys a context.
    CtxDestroy = 20, "cuCtxDestroy_v2", Teardown;
    /// Gives the primary context back.
    PrimaryCtxRelease = 21, "cuDevicePrimaryCtxRelease_v2", Teardown;
    /// Loads a library.
    LibraryLoad = 22, "cuLibraryLoadData", Load;
    /// Looks a kernel up in a library.
    LibraryGetKernel = 23, "cuLibraryGetKernel", GetFunction;
    /// Makes a function of a kernel.
    KernelGetFunction = 24, "cuKernelGetFunction", GetFunction;
    /// Unloads a library.
    LibraryUnload = 25, "cuLibraryUnload", Unload;
    /// Reads how much device memory is free.
    MemGetInfo = 26, "cuMemGetInfo_v2", Startup;
    /// Names an error.
    GetErrorName = 27, "cuGetErrorName", Main;
    /// Describes an error.
    GetErrorString = 28, "cuGetErrorString", Main;
    /// Gives the primary context up by force.
    PrimaryCtxReset = 29, "cuDevicePrimaryCtxReset_v2", Teardown;
    /// Copies to the device in a stream's order.
    MemcpyHtoDAsync = 30, "cuMemcpyHtoDAsync_v2", Main;
    /// Copies from the device in a stream's order.
    MemcpyDtoHAsync = 31, "cuMemcpyDtoHAsync_v2", Main;
    /// Compares results: the worker's own step.
    Verify = 64, "worker:verify", Main;
    /// Waits for another thread or for a time: the worker's own step.
    Wait = 65, "worker:wait", Main;
    /// Anything else that a script asks for: the worker's own step.
    Step = 66, "worker:step", Main;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_json_are_the_words_displayed() {
        for owner in Owner::ALL {
            assert_eq!(serde_json::to_string(owner).unwrap(), format!("\"{owner}\""));
        }
        assert_eq!(Place::HostObjectUnmapped.to_string(), "host_object_unmapped");
    }

    #[test]
    fn every_call_is_found_again_by_its_number() {
        for &call in Call::ALL {
            assert_eq!(Call::from_number(call as u8), Some(call));
        }
        assert_eq!(Call::from_number(0), None);
    }
}
