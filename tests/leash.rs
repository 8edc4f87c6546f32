//! Programs run on the leash: their end, their words, their time limit, and what they leave running.

use cubin_stress::cubin::child::{Child, Ending};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::path::Path;
use std::time::Duration;

fn child(limit: Duration) -> Child {
    Child { own_program: env!("CARGO_BIN_EXE_stress").into(), limit }
}

fn shell(limit: Duration, script: &str) -> cubin_stress::cubin::child::Finished {
    child(limit).run(Path::new("/bin/sh"), &["-c", script], None, b"given\n").unwrap()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn input_output_and_exit_code() {
    let finished = shell(LONG, "read word; echo got $word; echo sorry >&2; exit 7");
    assert_eq!(finished.ending, Ending::Exited(7));
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice()), (&b"got given\n"[..], &b"sorry\n"[..]));
    assert_eq!(finished.last_words(3), "…rry");
}

#[test]
fn a_signal_is_an_ending_and_leaves_no_core() {
    let folder = tempfile::tempdir().unwrap();
    let finished =
        child(LONG).run(Path::new("/bin/sh"), &["-c", "ulimit -c; kill -ABRT $$"], Some(folder.path()), &[]).unwrap();
    assert_eq!(finished.ending, Ending::Signaled(6));
    assert_eq!(finished.stdout, b"0\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_that_takes_too_long_goes_with_all_that_it_started() {
    // The grandchild would write for ever; the pid that it names must be gone once the child is.
    let finished = shell(Duration::from_millis(300), "sleep 1000 & echo $!; wait");
    assert_eq!(finished.ending, Ending::TimedOut);
    let pid = String::from_utf8(finished.stdout).unwrap().trim().to_owned();
    assert!(pid.parse::<u32>().is_ok(), "{pid:?}");
    // Killed: it is gone, or about to be.
    let number = Pid::from_raw(pid.parse().unwrap()).unwrap();
    if let Ok(watch) = pidfd_open(number, PidfdFlags::empty()) {
        let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&patience)), Ok(1), "process {pid} lives on");
    }
}

#[test]
fn more_output_than_a_pipe_holds_blocks_nobody() {
    let finished = shell(LONG, "head -c 20000000 /dev/zero");
    assert_eq!((finished.ending, finished.stdout.len()), (Ending::Exited(0), 4 << 20));
}

#[test]
fn a_program_that_is_not_there() {
    let finished = child(LONG).run(Path::new("/nonexistent/tool"), &["-x"], None, &[]).unwrap();
    assert_eq!(finished.ending, Ending::Exited(127));
    assert!(finished.last_words(200).contains("/nonexistent/tool"));
}
