//! Forks and exits: what the driver answers where it cannot work any more.

use crate::program::Run;

#[test]
fn a_forked_child_is_told_that_nothing_was_initialised() {
    let ended = Run::new("misuse", "tile/add.sm_120.cubin").arg("after-fork").output();
    assert_eq!(ended.stdout, "before cuInit 3\nin the child 3\nin the parent 0\n", "{ended:?}");
}

#[test]
fn after_its_exit_handler_every_call_answers_4() {
    let ended = Run::new("misuse", "tile/add.sm_120.cubin").arg("after-exit").output();
    assert_eq!(ended.stdout, "before cuInit 3\nafter the driver's end 4\nand its texts 4\n", "{ended:?}");
}
