//! What a child is handed through descriptors and limits before it may begin.

use super::spawn::Launch;
use super::trial::{TrialError, TrialSpec};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, Resource, Rlimit};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Numbers of descriptors in the child.
const ORDER: i32 = 3;
const IMAGE: i32 = 4;
const JOURNAL: i32 = 5;
const GATE: i32 = 6;

/// Memory that holds these bytes and that nobody can change any more.
fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    io::Write::write_all(&mut file, bytes)?;
    io::Seek::rewind(&mut file)?;
    let fd = OwnedFd::from(file);
    rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// The descriptors that only the child keeps.
#[derive(Debug)]
pub(super) struct Handover {
    null: File,
    order: OwnedFd,
    image: OwnedFd,
}

impl Handover {
    pub(super) fn new(spec: &TrialSpec) -> io::Result<Handover> {
        let order = serde_json::to_vec(&spec.order)?;
        Ok(Handover {
            null: File::options().read(true).write(true).open("/dev/null")?,
            order: sealed("stress-order", &order)?,
            image: sealed("stress-image", &spec.image)?,
        })
    }

    /// How to start the child.
    pub(super) fn launch<'a>(
        &'a self,
        spec: &TrialSpec,
        stderr: BorrowedFd<'a>,
        journal: BorrowedFd<'a>,
        gate: BorrowedFd<'a>,
    ) -> Launch<'a> {
        let (null, order, image) = (self.null.as_fd(), self.order.as_fd(), self.image.as_fd());
        Launch {
            program: spec.program.0.clone(),
            args: spec.program.1.clone(),
            env: std::env::vars_os()
                .filter(|(name, _)| spec.env.iter().all(|(other, _)| other != name))
                .chain(spec.env.iter().cloned())
                .collect(),
            descriptors: vec![
                (null, 0),
                (null, 1),
                (stderr, 2),
                (order, ORDER),
                (image, IMAGE),
                (journal, JOURNAL),
                (gate, GATE),
            ],
        }
    }
}

/// Limits the child's resources. It writes no core of its own: that takes long and fills disks.
pub(super) fn limit(pid: i32, spec: &TrialSpec) -> Result<(), TrialError> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(()) };
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::prlimit(Some(pid), Resource::Core, none);
    for limit in &spec.rlimits {
        let resource = resource(&limit.name).ok_or_else(|| TrialError::UnknownLimit(limit.name.clone()))?;
        let value = Rlimit { current: Some(limit.value), maximum: Some(limit.value) };
        rustix::process::prlimit(Some(pid), resource, value)
            .map_err(|error| TrialError::Limit { name: limit.name.clone(), error: error.into() })?;
    }
    Ok(())
}

/// The resource of this name, as in setrlimit(2) without `RLIMIT_` and in lower case.
fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "cpu" => Resource::Cpu,
        "fsize" => Resource::Fsize,
        "data" => Resource::Data,
        "stack" => Resource::Stack,
        "core" => Resource::Core,
        "rss" => Resource::Rss,
        "nproc" => Resource::Nproc,
        "nofile" => Resource::Nofile,
        "memlock" => Resource::Memlock,
        "as" => Resource::As,
        "locks" => Resource::Locks,
        "sigpending" => Resource::Sigpending,
        "msgqueue" => Resource::Msgqueue,
        "nice" => Resource::Nice,
        "rtprio" => Resource::Rtprio,
        "rttime" => Resource::Rttime,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_reads_back_and_cannot_be_changed() {
        let fd = sealed("test", b"order").unwrap();
        assert_eq!(io::read_to_string(File::from(fd.try_clone().unwrap())).unwrap(), "order");
        assert!(rustix::io::pwrite(&fd, b"x", 0).is_err());
    }

    #[test]
    fn limits_are_known_by_their_system_names() {
        assert_eq!(resource("nofile"), Some(Resource::Nofile));
        assert_eq!(resource("NOFILE"), None);
    }
}
