//! Starts the real binary's `worker` the way the supervisor does (descriptors 3 to 6), without watching it, and gives what it
//! left behind.
#![allow(unsafe_code, dead_code)] // dup2 between fork and exec; and no test file uses all of this

use cubin_stress::driver;
use cubin_stress::journal::{Journal, JournalSpec, Note, NoteKind, Snapshot, Totals};
use cubin_stress::plan::{DriverChoice, Order, Workload};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A worker that runs.
pub struct Running {
    pub journal: Journal,
    pub child: Child,
    gate: Option<std::io::PipeWriter>,
}

/// What a worker left behind.
pub struct Left {
    pub status: ExitStatus,
    pub snapshot: Snapshot,
    pub totals: Totals,
    pub stderr: String,
}

impl Left {
    /// Notes of one kind.
    pub fn notes(&self, kind: NoteKind) -> Vec<&Note> {
        self.snapshot.notes.iter().filter(|note| note.kind == kind).collect()
    }

    /// The texts of all notes, for messages.
    pub fn told(&self) -> String {
        let lines = self.snapshot.notes.iter().map(|note| format!("{:?}: {}", note.kind, note.text));
        format!("status {:?}\n{}\nstderr: {}", self.status, lines.collect::<Vec<_>>().join("\n"), self.stderr)
    }

    /// Rounds of all threads.
    pub fn rounds(&self) -> u64 {
        self.snapshot.threads.iter().map(|thread| thread.rounds).sum()
    }

    /// How often `call` was made, and how many of these failed.
    pub fn count(&self, call: cubin_stress::vocabulary::Call) -> (u64, u64) {
        self.totals.calls.get(&call).map_or((0, 0), |totals| (totals.count, totals.errors))
    }
}

/// The path of a committed image.
pub fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins").join(name)
}

/// An order on the simulated driver: `workload` for `seconds`.
pub fn order(image: &str, workload: Workload, seconds: f64) -> Order {
    let driver = driver::choose(&DriverChoice::Sim).expect("the simulated driver travels inside the binary").path;
    Order {
        driver,
        device: 0,
        image_path: committed(image),
        workload,
        seconds,
        seed: 1,
        child: 0,
        record: true,
        alternate: None,
    }
}

/// Starts a worker on the order's committed image; `environment` sets the simulated driver up.
pub fn start(order: &Order, environment: &[(&str, &str)]) -> Running {
    start_with(order, &std::fs::read(&order.image_path).unwrap(), environment)
}

/// Starts a worker on these bytes.
pub fn start_with(order: &Order, image: &[u8], environment: &[(&str, &str)]) -> Running {
    let spec = JournalSpec { threads: order.workload.threads.max(1), ..JournalSpec::default() };
    let journal = Journal::create(&spec).unwrap();
    let order_file = filled(&serde_json::to_vec(order).unwrap());
    let image_file = filled(image);
    let (gate, mut opener) = std::io::pipe().unwrap();
    opener.write_all(b"g").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
    command.arg("worker").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    for name in ["CUDA_SIM_BUG", "CUDA_SIM_PROFILE", "CUDA_SIM_DEVICE", "CUDA_SIM_CHILD"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).env("CUDA_SIM_CHILD", order.child.to_string());
    let handed: [OwnedFd; 4] =
        [order_file.into(), image_file.into(), journal.fd().try_clone_to_owned().unwrap(), gate.into()];
    // Out of the way of the numbers that they are to have in the child.
    let handed = handed.map(|fd| rustix::io::fcntl_dupfd_cloexec(&fd, 64).unwrap());
    let numbers: Vec<RawFd> = handed.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: only dup2 is called between fork and exec.
    unsafe {
        command.pre_exec(move || {
            for (target, &fd) in (3..).zip(&numbers) {
                if libc::dup2(fd, target) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    let child = command.spawn().unwrap();
    Running { journal, child, gate: Some(opener) }
}

impl Running {
    /// Waits for its end.
    pub fn finish(mut self) -> Left {
        let gate = self.gate.take();
        let output = self.child.wait_with_output().unwrap();
        drop(gate);
        Left {
            status: output.status,
            snapshot: self.journal.snapshot(4096),
            totals: self.journal.totals(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a worker to its end.
pub fn run(order: &Order, environment: &[(&str, &str)]) -> Left {
    start(order, environment).finish()
}

fn filled(bytes: &[u8]) -> File {
    let mut file = File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file
}
