//! One child's work: threads, what they call, what they keep.

use serde::{Deserialize, Serialize};

/// Three dimensions of a grid or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dim3(pub u32, pub u32, pub u32);

impl std::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}x{}", self.0, self.1, self.2)
    }
}

impl Default for Dim3 {
    fn default() -> Self {
        Dim3(1, 1, 1)
    }
}

/// How the worker's threads come by a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextKind {
    /// One context from `cuCtxCreate_v2`, shared by all threads.
    #[default]
    Created,
    /// The device's primary context, shared by all threads.
    Primary,
    /// A context of its own for each thread.
    PerThread,
}

/// Where a thread waits for the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncPlace {
    /// After each launch, before the module is unloaded.
    #[default]
    BeforeUnload,
    /// Nowhere.
    None,
}

/// Which calls a process-wide lock keeps apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// No lock.
    #[default]
    None,
    /// Unload excludes load, look-up and launch; those may overlap each other.
    Unload,
    /// One driver call at a time.
    All,
}

/// Which family of entry points loads and looks up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiStyle {
    /// `cuModule*`.
    #[default]
    Module,
    /// `cuLibrary*` and `cuKernel*`.
    Library,
}

/// How often results are read back and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Never.
    Off,
    /// On a schedule that costs little.
    #[default]
    Sampled,
    /// After every launch.
    All,
}

/// How the threads' calls are brought together in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Steering {
    /// Not at all: the plain loop.
    #[default]
    Free,
}

/// Which of several images a thread loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All threads of a child the same one: each image is an arm of its own.
    #[default]
    Same,
    /// Thread N the N-th, over and over.
    PerThread,
    /// Any, chosen anew for each load.
    Random,
}

/// One kernel argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Argument {
    /// A device pointer to fresh memory of this many bytes.
    Ptr {
        /// Size of the memory, bytes.
        bytes: u64,
    },
    /// A 32-bit integer.
    I32 {
        /// The value.
        value: i32,
    },
    /// A 64-bit integer.
    I64 {
        /// The value.
        value: i64,
    },
    /// A 32-bit float.
    F32 {
        /// The value.
        value: f32,
    },
    /// A 64-bit float.
    F64 {
        /// The value.
        value: f64,
    },
    /// This many zero bytes.
    Zero {
        /// Size of the argument, bytes.
        bytes: u32,
    },
}

/// What one child does with one image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Workload {
    /// Threads on the context.
    pub threads: usize,
    /// One module in this many is kept for the child's life; 0 keeps none, 1 keeps all.
    pub keep: u64,
    /// The kernel's name; none: the image's only kernel, or `repro_kernel`.
    pub kernel: Option<String>,
    /// Grid, in blocks.
    pub grid: Dim3,
    /// Block, in threads; none: what the image asks for.
    pub block: Option<Dim3>,
    /// The kernel's arguments; none: from the image.
    pub args: Option<Vec<Argument>>,
    /// Whose context.
    pub context: ContextKind,
    /// Where to wait for the device.
    pub sync: SyncPlace,
    /// What to keep apart.
    pub lock: LockKind,
    /// Which entry points.
    pub api: ApiStyle,
    /// How often to look at results.
    pub verify: Verify,
    /// How calls are brought together.
    pub steer: Steering,
    /// Which of several images a thread loads.
    pub spread: Spread,
    /// File offset of a byte that takes another value at every load, so that no two loads have the same content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_byte: Option<u64>,
    /// An exact sequence of calls to do instead of the loop.
    #[serde(rename = "op", skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<super::Op>,
}

impl Default for Workload {
    /// The report's loop: two threads, one module in four kept, synchronise before unload.
    fn default() -> Self {
        Workload {
            threads: 2,
            keep: 4,
            kernel: None,
            grid: Dim3::default(),
            block: None,
            args: None,
            context: ContextKind::default(),
            sync: SyncPlace::default(),
            lock: LockKind::default(),
            api: ApiStyle::default(),
            verify: Verify::default(),
            steer: Steering::default(),
            spread: Spread::default(),
            unique_byte: None,
            script: Vec::new(),
        }
    }
}

impl Workload {
    /// Whether a launch can overlap an unload of another module on the same context at all: what a run is judged by.
    pub fn can_overlap(&self) -> bool {
        self.script.is_empty()
            && self.threads > 1
            && self.lock == LockKind::None
            && self.context != ContextKind::PerThread
            && self.keep != 1
    }
}
