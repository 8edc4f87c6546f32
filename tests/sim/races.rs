//! Planted races, made to meet by `force=1`.

use crate::program::{Ended, Run};
use std::os::unix::process::ExitStatusExt as _;

const TILE: &str = "tile/add.sm_120.cubin";
const REGULAR: &str = "ptx/add.sm_120.cubin";

fn run(bug: &str, image: &str, threads: &str, lock: bool) -> Ended {
    let block = if image == REGULAR { "128" } else { "1" };
    let run = Run::new("loop", image).env("CUDA_SIM_BUG", bug).arg(block).arg("200").arg(threads).arg("4");
    if lock { run.arg("lock") } else { run }.output()
}

fn crashed(ended: &Ended, how: &str) {
    assert_eq!(ended.status.signal(), Some(11), "{ended:?}");
    assert!(ended.stdout.contains(how), "wanted '{how}' in {ended:?}");
}

#[test]
fn a_launch_follows_a_record_that_an_unload_freed_inside_libcuda() {
    for look in ["poison", "reused", "unmapped"] {
        for through in ["call", "load"] {
            let bug = format!("callback-list-race:force=1,look={look},through={through}");
            crashed(&run(&bug, TILE, "2", false), "signal 11 in launch pc in libcuda.so.1 unloads 1");
        }
    }
}

#[test]
fn every_seed_of_the_callback_race_ends_in_libcuda() {
    for seed in 0..12 {
        let bug = format!("callback-list-race:force=1,seed={seed}");
        crashed(&run(&bug, TILE, "2", false), "signal 11 in launch pc in libcuda.so.1 unloads 1");
    }
}

#[test]
fn the_callback_race_needs_tile_images_two_threads_and_no_lock() {
    let bug = "callback-list-race:force=1";
    for (image, threads, lock) in [(REGULAR, "2", false), (TILE, "1", false), (TILE, "2", true)] {
        let ended = run(bug, image, threads, lock);
        assert_eq!(ended.status.code(), Some(0), "{image}, {threads} threads, lock {lock}: {ended:?}");
    }
}

#[test]
fn freed_memory_that_no_one_touched_harms_no_one() {
    let ended = run("callback-list-race:force=1,look=untouched", TILE, "2", false);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
fn a_launch_jumps_to_where_a_shared_host_object_was() {
    crashed(
        &run("host-object-freed-early:force=1", TILE, "2", false),
        "signal 11 in launch pc in nowhere which is the fault address",
    );
    let regular = run("host-object-freed-early:force=1", REGULAR, "2", false);
    assert_eq!(regular.status.code(), Some(0), "{regular:?}");
}

#[test]
fn a_launch_reads_a_table_that_a_look_up_moved_whatever_the_image() {
    for image in [TILE, REGULAR] {
        for look in ["poison", "reused", "unmapped"] {
            let bug = format!("module-table-race:force=1,look={look}");
            crashed(&run(&bug, image, "2", false), "signal 11 in launch pc in libcuda.so.1");
        }
    }
    assert_eq!(run("module-table-race:force=1", TILE, "1", false).status.code(), Some(0));
}

#[test]
fn a_load_and_an_unload_wait_for_each_other() {
    for image in [TILE, REGULAR] {
        let ended = run("load-unload-deadlock:force=1", image, "2", false);
        assert_eq!(ended.status.code(), Some(9), "{ended:?}");
        assert!(ended.stdout.starts_with("no progress"), "{ended:?}");
    }
    assert_eq!(run("load-unload-deadlock:force=1", TILE, "1", false).status.code(), Some(0));
}

#[test]
fn every_eighth_launch_runs_other_code() {
    let ended = run("wrong-code:force=1", TILE, "2", false);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), "rounds 400 wrong 50\n"), "{ended:?}");
}
