//! Whether a script's ops can all be reached: each waits for the op before it in its thread, and for those that it names.

use crate::plan::Op;

/// Two moments of each op: about to enter the driver, and done.
const MOMENTS: usize = 2;

/// Checks that no op waits for itself, directly or through others.
///
/// # Errors
/// In words, with the number of an op that is never reached.
pub(super) fn check(ops: &[Op]) -> Result<(), String> {
    let entered = |index: usize| index * MOMENTS;
    let done = |index: usize| index * MOMENTS + 1;
    let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); ops.len() * MOMENTS];
    let mut last_of_thread = std::collections::HashMap::new();
    for (index, op) in ops.iter().enumerate() {
        let number = index + 1;
        for other in [op.after, op.after_entered].into_iter().flatten() {
            if other == 0 || other > ops.len() {
                return Err(format!("op {number} waits for op {other}, and there are {}", ops.len()));
            }
        }
        let before = &mut waits_for[entered(index)];
        before.extend(last_of_thread.insert(op.thread, index).map(done));
        before.extend(op.after.map(|other| done(other - 1)));
        before.extend(op.after_entered.map(|other| entered(other - 1)));
        waits_for[done(index)].push(entered(index));
    }
    // Reached, round by round, until nothing changes: scripts are short.
    let mut reached = vec![false; waits_for.len()];
    loop {
        let next = (0..reached.len()).filter(|&m| !reached[m] && waits_for[m].iter().all(|&w| reached[w]));
        let next: Vec<usize> = next.collect();
        if next.is_empty() {
            break;
        }
        next.into_iter().for_each(|moment| reached[moment] = true);
    }
    match reached.iter().position(|reached| !reached) {
        None => Ok(()),
        Some(moment) => Err(format!("op {} is never reached: it waits for itself", moment / MOMENTS + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Vec<Op> {
        #[derive(serde::Deserialize)]
        struct Script {
            op: Vec<Op>,
        }
        toml::from_str::<Script>(text).unwrap().op
    }

    #[test]
    fn threads_that_wait_for_each_other_in_turn_can_go_on() {
        let ops = script(
            "[[op]]\ncall = 'sync'\n\
             [[op]]\nthread = 1\ncall = 'sync'\nafter_entered = 1\n\
             [[op]]\ncall = 'sync'\nafter = 2\n",
        );
        assert_eq!(check(&ops), Ok(()));
    }

    #[test]
    fn a_circle_is_refused_with_an_op_that_lies_on_it() {
        let ops = script(
            "[[op]]\ncall = 'sync'\nafter = 2\n\
             [[op]]\nthread = 1\ncall = 'sync'\nafter_entered = 1\n",
        );
        assert!(check(&ops).unwrap_err().contains("never reached"));
        let later_in_its_own_thread = script("[[op]]\ncall = 'sync'\nafter = 2\n[[op]]\ncall = 'sync'\n");
        assert!(check(&later_in_its_own_thread).is_err());
    }

    #[test]
    fn an_op_that_is_not_there_is_refused() {
        for number in [0, 2] {
            let ops = script(&format!("[[op]]\ncall = 'sync'\nafter = {number}\n"));
            assert!(check(&ops).unwrap_err().contains(&format!("op {number}")));
        }
    }
}
