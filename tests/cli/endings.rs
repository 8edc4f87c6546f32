//! How runs end from outside: Ctrl-C, SIGTERM, kill -9, a full disk.

use crate::stress::{Bench, image};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(bench: &Bench, more: &[&str]) -> Child {
    let image = image("tile/add.sm_120.cubin");
    let mut command = bench.command();
    command.arg(image).args(["300", "--driver=sim", "--exposure-floor=1"]).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("stress starts")
}

/// Waits for a condition; the limit only ends a test that has failed.
#[track_caller]
fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Children of a process, zombies not counted.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()).collect()
}

fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// The worker of a run that has begun its loop.
fn worker_at_work(child: &Child) -> u32 {
    until("a worker with threads", || {
        let threads = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        children(child.id()).iter().any(|pid| threads(pid) > 2)
    });
    children(child.id())[0]
}

fn a_finished_trial(bench: &Bench) {
    let trials = bench.path().join("results/latest/trials.jsonl");
    until("a finished trial", || fs::read_to_string(&trials).is_ok_and(|text| text.contains('\n')));
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

fn summary_is_there(bench: &Bench) -> bool {
    bench.path().join("results/latest/summary.json").exists()
}

#[test]
fn the_first_interrupt_is_as_if_the_time_were_up() {
    let bench = Bench::new();
    let child = start(&bench, &["--life=0.5"]);
    a_finished_trial(&bench);
    worker_at_work(&child);
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(summary_is_there(&bench));
}

#[test]
fn a_termination_saves_and_says_so() {
    let bench = Bench::new();
    let child = start(&bench, &[]);
    let worker = worker_at_work(&child);
    signal(child.id(), "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(summary_is_there(&bench) && !alive(worker));
}

#[test]
fn a_killed_supervisor_leaves_no_child_and_a_folder_that_reads_back() {
    let bench = Bench::new();
    let mut child = start(&bench, &["--life=0.2"]);
    a_finished_trial(&bench);
    let worker = worker_at_work(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    until("no child outlives its supervisor", || !alive(worker));
    let shown = bench.run(["report", "latest"]).expect(0).stdout();
    assert!(shown.contains("cut short") && shown.contains("SIMULATED"), "{shown}");
}

#[test]
fn a_child_killed_from_outside_is_not_the_drivers_fault() {
    let bench = Bench::new();
    let child = start(&bench, &["--max-faults=1"]);
    signal(worker_at_work(&child), "KILL");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let fault = &bench.latest()["faults"][0];
    assert_eq!((&fault["owner"], &fault["signal"]), (&"harness".into(), &9.into()), "{fault:#}");
}

/// Needs the right to mount: says so and ends where it has not.
#[test]
fn a_full_disk_costs_files_but_not_the_result() {
    let bench = Bench::new();
    let small = bench.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&small).status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: this user may not mount a tmpfs");
        return;
    }
    let ran = run_on(&bench, &small);
    let unmounted = Command::new("umount").arg("-l").arg(&small).status().unwrap();
    assert!(unmounted.success());
    let (code, stdout, stderr) = ran;
    assert_eq!(code, Some(1), "{stdout}\n{stderr}");
    assert!(stdout.contains("faults: 60"), "{stdout}\n{stderr}");
    assert!(stdout.contains("No space left"), "{stdout}\n{stderr}");
}

fn run_on(bench: &Bench, out: &Path) -> (Option<i32>, String, String) {
    let image = image("tile/add.sm_120.cubin");
    let bug = "--sim-bug=callback-list-race:force=1";
    let args = [
        image.to_str().unwrap(),
        "300",
        "--driver=sim",
        bug,
        "--max-faults=60",
        "--gate=off",
        "--out",
        out.to_str().unwrap(),
    ];
    let ran = bench.run(args);
    (ran.code(), ran.stdout(), ran.stderr())
}

#[test]
fn a_status_that_is_asked_for_is_given_and_nothing_ends() {
    let bench = Bench::new();
    let child = start(&bench, &["--life=60"]);
    worker_at_work(&child);
    signal(child.id(), "USR1");
    signal(child.id(), "HUP");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "a terminal that goes away ends the run, saved");
    assert!(summary_is_there(&bench));
}

#[test]
fn a_stderr_that_cannot_be_written_costs_nothing() {
    let bench = Bench::new();
    let image = image("tile/add.sm_120.cubin");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let bug = "--sim-bug=callback-list-race:force=1";
    let mut command = bench.command();
    command.arg(image).args(["30", "--driver=sim", bug, "--max-faults=1"]);
    let output = command.stderr(full).stdout(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(summary_is_there(&bench));
}

#[test]
fn a_child_that_is_stopped_is_nobodys_hang() {
    let bench = Bench::new();
    let child = start(&bench, &["--hang-after=1s", "--max-faults=1"]);
    signal(worker_at_work(&child), "STOP");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let fault = &bench.latest()["faults"][0];
    assert_eq!((&fault["kind"], &fault["owner"]), (&"hang".into(), &"harness".into()), "{fault:#}");
}

/// The driver leaves the process in the middle of a call, with a status that the worker uses too.
#[test]
fn an_exit_that_the_driver_makes_is_a_fault_whatever_its_status() {
    let bench = Bench::new();
    let library = bench.path().join("leaves.so");
    let folder = bench.run(["sim", "path"]).expect(0).stdout();
    let source = "#include <dlfcn.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int cuModuleUnload(void *m) { static int n; static int (*f)(void *);\n\
         if (!f) f = dlsym(RTLD_NEXT, \"cuModuleUnload\");\n\
         if (__sync_add_and_fetch(&n, 1) == 200) _exit(3);\n return f(m); }\n";
    fs::write(bench.path().join("leaves.c"), source).unwrap();
    let mut cc = Command::new("cc");
    cc.current_dir(bench.path()).args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&library).arg("leaves.c");
    cc.arg(format!("{}/libcuda.so.1", folder.trim())).arg(format!("-Wl,-rpath,{}", folder.trim())).arg("-ldl");
    assert!(cc.status().unwrap().success());
    // What the library does not export itself is found in the one that it needs, but not by dlsym on its own handle's
    // exports table alone: the driver is therefore named by path, and its needs are searched after it.
    let image = image("tile/add.sm_120.cubin");
    let ran = bench.run([image.to_str().unwrap(), "10", "--max-faults=1", "--driver", library.to_str().unwrap()]);
    if ran.code() == Some(3) && ran.stderr().contains("cuInit") {
        println!("skipped: a library that forwards by its needs is not taken for a driver");
        return;
    }
    let ran = ran.expect(1);
    assert!(ran.stdout().contains("abnormal exit in unload"), "{}", ran.stdout());
}
