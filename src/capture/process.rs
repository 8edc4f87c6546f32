//! What `/proc` says of a process and its threads. Every byte may be stale or absent: answers are options.

use crate::evidence::ProcessFacts;
use std::collections::BTreeMap;
use std::fs;

/// The process that a thread belongs to.
pub fn process_of(tid: i32) -> Option<i32> {
    field(&fs::read_to_string(format!("/proc/{tid}/status")).ok()?, "Tgid")?.parse().ok()
}

/// The threads of a process; none where it is gone.
pub fn threads_of(process: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether anything of the process is left, a zombie included.
pub fn exists(process: i32) -> bool {
    fs::exists(format!("/proc/{process}/stat")).unwrap_or(false)
}

/// Whether a thread has ended and only waits to be reaped.
pub fn is_zombie(process: i32, tid: i32) -> bool {
    matches!(state_of(process, tid), None | Some('Z' | 'X'))
}

/// A thread's state letter.
pub fn state_of(process: i32, tid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{tid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// What is only right before a thread is stopped: afterwards the kernel says `ptrace_stop` and `t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// State letter.
    pub state: Option<char>,
    /// Kernel function that it waits in.
    pub wait_channel: Option<String>,
}

/// Reads [`Before`] of every thread but those that stand still already.
pub fn before_stop(process: i32, standing: &[i32]) -> BTreeMap<i32, Before> {
    let threads = threads_of(process).into_iter().filter(|tid| !standing.contains(tid));
    threads
        .map(|tid| (tid, Before { state: state_of(process, tid), wait_channel: wait_channel(process, tid) }))
        .collect()
}

fn wait_channel(process: i32, tid: i32) -> Option<String> {
    let channel = fs::read_to_string(format!("/proc/{process}/task/{tid}/wchan")).ok()?;
    (!channel.is_empty() && channel != "0").then_some(channel)
}

/// The name that a thread gave itself.
pub fn name_of(process: i32, tid: i32) -> String {
    let name = fs::read(format!("/proc/{process}/task/{tid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned()
}

/// The system call that a thread is in: its number and arguments.
pub fn syscall_of(process: i32, tid: i32) -> Option<(i64, [u64; 6])> {
    parse_syscall(&fs::read_to_string(format!("/proc/{process}/task/{tid}/syscall")).ok()?)
}

fn parse_syscall(line: &str) -> Option<(i64, [u64; 6])> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok().filter(|&number| number >= 0)?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, arguments))
}

/// The process as a whole: memory, descriptors, signal dispositions.
pub fn facts_of(process: i32) -> Option<ProcessFacts> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let number = |name| field(&status, name).and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    let mask = |name| field(&status, name).and_then(|value| u64::from_str_radix(value, 16).ok()).unwrap_or(0);
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok().map(|entries| entries.count() as u64);
    Some(ProcessFacts {
        resident_bytes: number("VmRSS").map(|kib| kib << 10),
        peak_resident_bytes: number("VmHWM").map(|kib| kib << 10),
        descriptors,
        threads: number("Threads"),
        signals_caught: signals(mask("SigCgt")),
        signals_ignored: signals(mask("SigIgn")),
        handlers_changed: None,
    })
}

/// Signal numbers in a mask as `/proc/pid/status` has it.
fn signals(mask: u64) -> Vec<i32> {
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

/// Signals that the process has handlers for.
pub fn caught_by(process: i32) -> Option<Vec<i32>> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(signals(u64::from_str_radix(field(&status, "SigCgt")?, 16).ok()?))
}

/// Whether the process has a handler of its own for a signal.
pub fn catches(process: i32, signal: i32) -> bool {
    caught_by(process).is_some_and(|caught| caught.contains(&signal))
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_a_system_call_has_six_arguments() {
        let line = "202 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f01\n";
        assert_eq!(parse_syscall(line), Some((202, [0x7f00, 0x80, 2, 0, 0, 0])));
        assert_eq!(parse_syscall("running\n"), None);
        assert_eq!(parse_syscall("-1 0x7ffe 0x7f01\n"), None);
    }

    #[test]
    fn this_process_is_found_in_proc() {
        let me = std::process::id() as i32;
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        assert_eq!(process_of(tid), Some(me));
        assert!(threads_of(me).contains(&tid));
        assert!(exists(me) && !is_zombie(me, tid));
        let facts = facts_of(me).unwrap();
        assert!(facts.resident_bytes.unwrap() > 0 && facts.descriptors.unwrap() > 2);
    }

    #[test]
    fn a_process_that_is_gone_answers_nothing() {
        assert_eq!(process_of(i32::MAX), None);
        assert!(threads_of(i32::MAX).is_empty() && !exists(i32::MAX) && is_zombie(i32::MAX, 1));
        assert!(facts_of(i32::MAX).is_none() && before_stop(i32::MAX, &[]).is_empty());
    }

    #[test]
    fn masks_name_signals_from_one() {
        assert_eq!(signals(0x8000_0000_0000_0401), [1, 11, 64]);
    }
}
