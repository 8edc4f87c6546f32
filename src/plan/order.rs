//! What a child is handed, as JSON through a descriptor.

use super::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Whether a driver library is NVIDIA's or the laboratory's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// A library that does not call itself simulated.
    Real,
    /// The simulated driver.
    Simulated,
}

/// How the simulated driver is set up, in its own syntax `NAME[:key=value,...]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimSettings {
    /// The planted bug (`CUDA_SIM_BUG`).
    pub bug: Option<String>,
    /// The latency profile (`CUDA_SIM_PROFILE`).
    pub profile: Option<String>,
    /// The device's architecture, such as `sm_120` (`CUDA_SIM_DEVICE`).
    pub device: Option<String>,
}

/// One child's order. The image's bytes come through a descriptor of their own, so that every child of a run loads the
/// same bytes whatever happens to the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The driver library to open.
    pub driver: PathBuf,
    /// Which device.
    pub device: i32,
    /// Where the image came from: for messages only.
    pub image_path: PathBuf,
    /// What to do with it.
    pub workload: Workload,
    /// How long the hot loop runs, seconds.
    pub seconds: f64,
    /// Seed of everything random in this child.
    pub seed: u64,
    /// This child's number in the run, from 0 (`CUDA_SIM_CHILD`).
    pub child: u64,
    /// Switches the journal's recording on; off only where its cost is measured.
    pub record: bool,
    /// Switches recording on and off every so many rounds, and prints how long each block took: for measuring its cost only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternate: Option<u32>,
}
