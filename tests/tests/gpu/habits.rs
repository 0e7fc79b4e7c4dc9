//! The ways in which programs use the driver: late, without a device, again after a reset, with children, with slow work. All of them are checkpointed, and
//! moved twice.

use stillpoint_tests::command::exit;

use crate::heat::node;
use crate::running;

/// `then` is the word that the program gets after the first checkpoint, and its answer.
fn carried(kind: &str, then: Option<(&str, &str)>) {
    for option in ["--gpu-staging=auto", "--gpu-staging=off"] {
        running::on(&node(1), ("habits", kind), |it| {
            let mut job = it.start(option)?;
            it.ask("checkpoint")?.expect(exit::DONE)?;
            if let Some((told, says)) = then {
                it.tell(told)?;
                it.wait(&mut job, says)?;
            }
            it.ask("checkpoint")?.expect(exit::DONE)?;
            for _ in 0..2 {
                job = it.moved(job)?;
                it.ask("checkpoint")?.expect(exit::DONE)?;
            }
            it.ends_well(job).map(drop)
        });
    }
}

#[test]
fn a_driver_without_a_context() {
    carried("idle", None);
}

#[test]
fn a_driver_that_is_opened_after_a_checkpoint() {
    carried("late", Some(("open", "opened")));
}

#[test]
fn devices_that_are_reset() {
    carried("reset", None);
}

#[test]
fn children_of_a_program_with_a_context() {
    carried("children", None);
}

#[test]
fn kernels_that_take_a_second() {
    carried("long", None);
}
