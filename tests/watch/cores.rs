//! Cores: small, whole, and readable by a debugger.

use crate::victim::{only_fault, run_spec, spec};
use std::path::Path;
use std::process::Command;

fn gdb(program: &Path, core: &Path) -> Option<String> {
    let commands =
        ["-ex", "info threads", "-ex", "info sharedlibrary", "-ex", "thread apply all backtrace", "-ex", "p $_siginfo"];
    let output = Command::new("gdb").args(["-batch", "-nx"]).args(commands).arg(program).arg(core).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_core_of_64_threads_is_small_and_a_debugger_shows_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec("many-threads", &["64"]);
    spec.core_dir = Some(folder.path().to_owned());
    let program = spec.program.0.clone();
    let (outcome, _) = run_spec(spec);
    let fault = only_fault(&outcome);
    assert_eq!(fault.soft_errors, Vec::<String>::new());
    let core = folder.path().join(fault.core.as_ref().unwrap());
    let size = std::fs::metadata(&core).unwrap().len();
    assert!((100 << 10..5 << 20).contains(&size), "{size} bytes");
    let Some(text) = gdb(&program, &core) else {
        eprintln!("skipped: there is no gdb here");
        return;
    };
    assert!(text.contains("terminated with signal SIGSEGV"), "{text}");
    assert_eq!(
        text.matches(" (LWP ").count(),
        1 + 2 * 64,
        "the current thread, then each listed and walked:
{text}"
    );
    assert!(text.contains("libc.so.6") && text.contains("ld-linux"), "{text}");
    assert!(text.matches(" body (").count() >= 63 && text.contains(" main ("), "{text}");
    assert!(text.contains("si_addr = 0x8") && text.contains("si_code = 1"), "{text}");
}
