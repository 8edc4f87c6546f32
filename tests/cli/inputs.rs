//! What users get wrong, and how they are told: one line, exit code 2 (3 for what cannot run here), no driver call.

use crate::stress::{Bench, image};
use std::fs;

#[test]
fn nothing_given_says_what_to_try() {
    let ran = Bench::new().run::<&str>([]).expect(2);
    assert!(ran.stderr().contains("stress cubins/tile/add.sm_120.cubin 20"), "{}", ran.stderr());
}

#[test]
fn a_missing_file_is_named() {
    let ran = Bench::new().run(["nowhere.cubin", "1"]).expect(2);
    assert!(ran.stderr().contains("nowhere.cubin"));
}

/// Case A9 c and d, and what else a path may turn out to be.
#[test]
fn what_is_no_image_is_refused_in_one_line() {
    let bench = Bench::new();
    let good = fs::read(image("tile/add.sm_120.cubin")).unwrap();
    let mut headless = good.clone();
    headless[..4].fill(0);
    let files: [(&str, &[u8]); 5] = [
        ("truncated", &good[..64]),
        ("headless", &headless),
        ("empty", b""),
        ("gzip", &[0x1f, 0x8b, 8, 0]),
        ("text", b"hello"),
    ];
    for (name, bytes) in files {
        fs::write(bench.path().join(name), bytes).unwrap();
        let ran = bench.run([name, "1"]).expect(2);
        assert!(ran.stderr().contains(name), "{}", ran.stderr());
        assert_eq!(ran.stderr().lines().count(), 1, "{}", ran.stderr());
    }
    for odd in ["/dev/zero", "/"] {
        bench.run([odd, "1"]).expect(2);
    }
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let bench = Bench::new();
    let pipe = bench.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let ran = bench.run([pipe.as_os_str(), "1".as_ref()]).expect(2);
    assert!(ran.stderr().contains("a pipe"), "{}", ran.stderr());
}

/// Case A10: the kernel is looked for in the image before anything is launched, whatever the driver makes of it; one that
/// finds what is not there is noted.
#[test]
fn an_absent_kernel_is_named_with_those_that_are_there() {
    let bench = Bench::new();
    for lookup in ["strict", "lenient"] {
        let path = image("ptx/add.sm_120.cubin");
        let profile = format!("none:lookup={lookup}");
        let ran =
            bench.run([path.to_str().unwrap(), "1", "--kernel", "no_such_kernel", "--sim-profile", &profile]).expect(2);
        for word in ["no_such_kernel", "add.sm_120.cubin", "repro_kernel"] {
            assert!(ran.stderr().contains(word), "{word} in {}", ran.stderr());
        }
        let noted = ran.stderr().contains("driver accepted a lookup of an absent symbol");
        assert_eq!(noted, lookup == "lenient", "{}", ran.stderr());
    }
}

#[test]
fn bad_options_name_themselves() {
    let bench = Bench::new();
    let path = image("ptx/add.sm_120.cubin");
    let cases: [&[&str]; 8] = [
        &["--threads", "0"],
        &["--grid", "0"],
        &["--context", "mine"],
        &["--rlimit", "nofile"],
        &["--args", "u8:1"],
        &["--hang-after", "soon"],
        &["--sim-bug", "no-such-bug"],
        &["--sim-profile", "none:no-such-key=1"],
    ];
    for case in cases {
        let ran = bench.run([&[path.to_str().unwrap(), "1"], case].concat()).expect(2);
        assert!(ran.stderr().contains(case[0]), "{} in {}", case[0], ran.stderr());
    }
}

#[test]
fn a_plan_file_is_read_and_the_command_line_wins() {
    let bench = Bench::new();
    let path = image("ptx/add.sm_120.cubin");
    fs::write(bench.path().join("plan.toml"), "threads = 7\nkeep = 9\n").unwrap();
    let args = [path.to_str().unwrap(), "3", "--plan", "plan.toml", "--keep", "2", "--print-config"];
    let shown = bench.run(args).expect(0).stdout();
    for line in ["threads = 7", "keep = 2", "seconds = 3.0", "#   threads: plan file", "#   keep: command line"] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    fs::write(bench.path().join("plan.toml"), "threds = 7\n").unwrap();
    let ran = bench.run([path.to_str().unwrap(), "--plan", "plan.toml"]).expect(2);
    assert!(ran.stderr().contains("threds"), "{}", ran.stderr());
}

#[test]
fn the_committed_schema_is_the_one_that_is_printed() {
    let printed = Bench::new().run(["schema"]).expect(0).stdout();
    let committed = crate::stress::repository().join("schemas/summary-1.json");
    assert_eq!(printed, fs::read_to_string(committed).unwrap(), "run `stress schema > schemas/summary-1.json`");
}

#[test]
fn a_plan_files_values_are_checked_as_the_command_lines_are() {
    let bench = Bench::new();
    let path = image("ptx/add.sm_120.cubin");
    for line in ["life = -1.0", "hang-after = 0.0", "confidence = 7.0", "trials = 0", "max-faults = 0", "life = nan"] {
        fs::write(bench.path().join("plan.toml"), line).unwrap();
        let ran = bench.run([path.to_str().unwrap(), "1", "--driver=sim", "--plan", "plan.toml"]).expect(2);
        assert!(ran.stderr().contains(line.split(' ').next().unwrap()), "{line}: {}", ran.stderr());
    }
    let cases: [&[&str]; 4] =
        [&["1h30m"], &["1", "--args", "f32:nan"], &["1", "--rlimit", "foo=1"], &["1", "--trials", "0"]];
    for case in cases {
        let ran = bench.run([&[path.to_str().unwrap()], case].concat()).expect(2);
        assert!(!bench.path().join("results").exists(), "{case:?}: {}", ran.stderr());
    }
}
