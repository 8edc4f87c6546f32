//! `kill -9` of the supervisor leaves no child behind, whatever session it is in.

use crate::victim::{run_spec, spec};
use cubin_stress::plan::Observe;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable that the harness and all that descends from it carry.
const MARK: &str = "STRESS_TEST_MARK";

/// Not a test of its own: the supervisor that the test below kills.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn supervisor() {
    if std::env::var_os(MARK).is_some() {
        run_spec(spec("forks-grandchild", &["wait"]));
    }
}

/// Living processes (zombies are none) that carry the mark and run this program.
fn marked(mark: &str, program: &Path) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let carries = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        exe == program && environment.split(|&byte| byte == 0).any(|word| word == wanted.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(carries).collect()
}

/// Waits until as many as wanted are there.
fn until_marked(mark: &str, program: &Path, wanted: usize, supervisor: &mut Child) -> Vec<i32> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let found = marked(mark, program);
        if found.len() == wanted {
            return found;
        }
        assert_eq!(supervisor.try_wait().unwrap(), None, "the supervisor ended before it was killed");
        assert!(Instant::now() < until, "{} of {wanted} processes after 20 s", found.len());
        std::thread::yield_now();
    }
}

fn assert_all_go(mark: &str, program: &Path) {
    let until = Instant::now() + Duration::from_secs(20);
    while !marked(mark, program).is_empty() {
        assert!(Instant::now() < until, "left behind: {:?}", marked(mark, program));
        std::thread::yield_now();
    }
}

#[test]
fn a_grandchild_in_its_own_session_goes_with_the_supervisor() {
    let mark = format!("grandchild-{}", std::process::id());
    let program = victims::program("forks-grandchild");
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervisor_dies::supervisor", "--ignored"])
        .env(MARK, &mark)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until_marked(&mark, &program, 2, &mut supervisor);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert_all_go(&mark, &program);
}

#[test]
fn the_worker_goes_with_the_supervisor_however_it_is_watched() {
    for observe in [Observe::Full, Observe::None] {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("worker-{observe:?}-{}", std::process::id());
        let program = Path::new(env!("CARGO_BIN_EXE_stress"));
        let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("cubins/tile/add.sm_120.cubin");
        let observe = format!("{observe:?}").to_lowercase();
        let mut supervisor = Command::new(program)
            .arg(image)
            .args(["600", "--driver", "sim", "--observe", &observe])
            .current_dir(folder.path())
            .env(MARK, &mark)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until_marked(&mark, program, 2, &mut supervisor);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        assert_all_go(&mark, program);
    }
}
