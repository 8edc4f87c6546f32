//! An exact sequence of driver calls, legal or not, as data.
//!
//! ```toml
//! [[op]]
//! thread = 0
//! call = "load"
//! module = "m1"
//! [[op]]
//! thread = 0
//! call = "get_function"
//! module = "m1"
//! function = "f1"
//! ```
//! Each thread does its own ops in order. An op with `after = N` first waits until op N (counted over the whole list, from 1)
//! is done, or with `after_entered = N` until op N is about to enter the driver.

use serde::{Deserialize, Serialize};

/// What an op does. Names of modules, functions, streams, contexts and buffers are made up by the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpCall {
    /// `cuModuleLoadData` of the image into `module`.
    Load,
    /// `cuModuleGetFunction` of the kernel in `module` into `function`.
    GetFunction,
    /// `cuLaunchKernel` of `function` on `stream` (default stream if none).
    Launch,
    /// `cuCtxSynchronize`.
    Sync,
    /// `cuModuleUnload` of `module`.
    Unload,
    /// `cuStreamCreate` into `stream`.
    StreamCreate,
    /// `cuStreamSynchronize` of `stream`.
    StreamSync,
    /// `cuStreamDestroy_v2` of `stream`.
    StreamDestroy,
    /// `cuCtxCreate_v2` into `context`.
    CtxCreate,
    /// `cuCtxSetCurrent` of `context`.
    CtxSetCurrent,
    /// `cuCtxDestroy_v2` of `context`.
    CtxDestroy,
    /// `cuMemAlloc_v2` of `bytes` into `buffer`.
    MemAlloc,
    /// `cuMemFree_v2` of `buffer`.
    MemFree,
    /// Copies `bytes` into `buffer` with `cuMemcpyHtoD_v2`.
    CopyIn,
    /// Copies `bytes` out of `buffer` with `cuMemcpyDtoH_v2`.
    CopyOut,
    /// `cuGetErrorString` of code `value`, its answer written through the pointer `address`.
    GetErrorString,
    /// Reads back the results of the kernel and compares them.
    Verify,
    /// Sleeps `millis`.
    Sleep,
}

/// What a call should answer; anything else is an `api_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expect {
    /// This code.
    Code(i32),
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// The thread that does it, from 0.
    #[serde(default)]
    pub thread: usize,
    /// What it does.
    pub call: OpCall,
    /// A module's name in this script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// A function's name in this script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// A stream's name in this script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// A context's name in this script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// A buffer's name in this script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// Bytes to allocate or copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// A raw address to hand to the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// A plain value to hand to the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// Milliseconds to sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// Waits until this op (from 1, over the whole list) is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<usize>,
    /// Waits until this op (from 1, over the whole list) is about to enter the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_entered: Option<usize>,
    /// What it should answer; none: success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}
