//! Asks what a host object's callbacks write, by having a child call them (`stress probe-callbacks`).

use super::child::{Child, Ending};
use super::image::hex;
use cubin_image::Cubin;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long callbacks may take. They take microseconds; the rest is for a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

/// What one kernel's callback did to a marked buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedCallback {
    /// The kernel that the table names.
    pub kernel: String,
    /// What the callback returned.
    pub returned: i32,
    /// Offset of the first byte that it changed, and of the last; none if it changed nothing.
    pub changed: Option<(u32, u32)>,
    /// How many bytes it changed.
    pub changed_bytes: u32,
    /// It changed bytes behind the kernel's buffer.
    pub beyond_buffer: bool,
}

/// What the child prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// What `on_pre_load` returned.
    pub pre_load: i32,
    /// One a kernel of the table that the image has.
    pub callbacks: Vec<ProbedCallback>,
}

/// Knows, or finds out, what the callbacks of an image's host object write.
pub trait HostProbe: Sync {
    /// What each callback wrote.
    ///
    /// # Errors
    /// Why it is not known, in one line.
    fn probe(&self, cubin: &Cubin, data: &[u8]) -> Result<Vec<ProbedCallback>, String>;
}

/// Asks nobody.
pub struct NoProbe;

impl HostProbe for NoProbe {
    fn probe(&self, _: &Cubin, _: &[u8]) -> Result<Vec<ProbedCallback>, String> {
        Err("callbacks were not called".into())
    }
}

type Answer = Result<Vec<ProbedCallback>, String>;

/// Asks a child, once for each host object and set of parameters.
pub struct ChildProbe {
    child: Child,
    known: Mutex<HashMap<String, Arc<OnceLock<Answer>>>>,
}

impl ChildProbe {
    /// `own_program` is the `stress` program, whose hidden commands do the work.
    pub fn new(own_program: std::path::PathBuf) -> ChildProbe {
        ChildProbe { child: Child { own_program, limit: LIMIT }, known: Mutex::default() }
    }

    fn ask(&self, data: &[u8]) -> Answer {
        let own = self.child.own_program.clone();
        let finished = self
            .child
            .run(&own, &["probe-callbacks"], None, data)
            .map_err(|e| format!("the child cannot be started: {e}"))?;
        match finished.ending {
            Ending::Exited(0) => {
                let report: ProbeReport = serde_json::from_slice(&finished.stdout).map_err(|e| e.to_string())?;
                Ok(report.callbacks)
            }
            Ending::Exited(3) => Err(finished.last_words(300)),
            other => Err(format!("the child that called them {other}")),
        }
    }
}

impl HostProbe for ChildProbe {
    fn probe(&self, cubin: &Cubin, data: &[u8]) -> Answer {
        let Some(host) = cubin.host_object() else { return Ok(Vec::new()) };
        host.check_native().map_err(|e| e.to_string())?;
        let mut digest = Sha256::new_with_prefix(&host.bytes);
        for kernel in &cubin.kernels {
            let layout: Vec<_> = kernel.parameters.iter().map(|p| (p.offset, p.size, p.space)).collect();
            digest.update(format!("{:?}{:?}{}", kernel.name, layout, kernel.cbank_param_size));
        }
        let key = hex(&digest.finalize());
        let answer = self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        answer.get_or_init(|| self.ask(data)).clone()
    }
}
