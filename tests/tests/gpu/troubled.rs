//! Faults of GPUs: the job runs on, or it ends and its last epoch is whole.

use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure, strike};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

/// Checks that a checkpoint fails for a reason, that the next one succeeds, and that the job comes to its end.
fn runs_on(heat: &Heat, fault: &str, status: i32, word: &str) -> Result<(), Failed> {
    let natively = heat.natively()?;
    let mut job = heat.start(&[])?;
    heat.checkpoint()?.expect(exit::DONE)?;
    heat.gpus.fault(fault, None)?;
    // The answer is the hindrance, at once.
    let answer = command::checkpoint(heat.directory, heat.target())?;
    answer.expect_reason(status, word)?;
    ensure!(command::epochs(heat.target()) == [1], "an epoch too many");
    ensure!(job.runs(), "the job has ended: {}", job.stderr());
    heat.gpus.no_fault(fault)?;
    heat.checkpoint()?.expect(exit::DONE)?;
    heat.ends_as(job, &natively)
}

#[test]
fn work_that_does_not_end_hinders_a_checkpoint() {
    heat::on(&node(2), 2, LONG, |heat| {
        runs_on(heat, "lock-timeout", exit::REFUSED, "did not come to it")
    });
}

/// Another checkpointer finds the process as it has left it.
#[test]
fn a_rank_that_another_checkpointer_holds_is_left_alone() {
    heat::on(&node(2), 2, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&[])?;
        let rank = strike::ranks(heat.target())?
            .first()
            .ok_or("no rank is there")?
            .to_string();
        let checkpointer = Program::named(Kind::Gpu, "checkpointer")?.build()?;
        let other = |what: &str| {
            let mut command = Command::new(&checkpointer);
            command.args([rank.as_str(), what]);
            heat.gpus.reach(&mut command)?;
            command::run(command, heat.directory, PATIENCE)
        };
        let answer = other("lock=5000")?;
        ensure!(answer.status == 0, "{}", answer.show());
        let refused = command::checkpoint(heat.directory, heat.target())?;
        refused.expect_reason(exit::REFUSED, "somebody else checkpoints")?;
        let answer = other("state")?;
        ensure!(answer.stdout.contains("state is 1"), "{}", answer.show());
        other("unlock")?;
        heat.checkpoint()?.expect(exit::DONE)?;
        heat.ends_as(job, &natively)
    });
}

#[test]
fn a_checkpoint_that_the_driver_does_not_make_is_none() {
    heat::on(&node(2), 2, LONG, |heat| {
        runs_on(
            heat,
            "checkpoint-fails",
            exit::FAILED,
            "cuCheckpointProcessCheckpoint",
        )
    });
}

/// The devices' memory is lost: the job ends, says so, and carries on from the epoch before.
fn ends(heat: &Heat, fault: &str) -> Result<(), Failed> {
    let natively = heat.natively()?;
    let job = heat.start(&["--copy", "off"])?;
    heat.checkpoint()?.expect(exit::DONE)?;
    heat.gpus.fault(fault, Some(1))?;
    // The answer may come before that or not.
    let _ = heat.checkpoint()?;
    let ended = job.end(PATIENCE)?;
    ensure!(
        ended.status != 0 && ended.stderr.contains("stillpoint restart"),
        "{}",
        ended.show()
    );
    ensure!(
        command::epochs(heat.target()).first() == Some(&1),
        "the epoch is lost"
    );
    let job = heat.restarted()?;
    heat.ends_as(job, &natively)
}

#[test]
fn devices_that_do_not_come_back_end_the_job() {
    heat::on(&node(2), 2, LONG, |heat| ends(heat, "restore-fails"));
}

#[test]
fn a_driver_that_breaks_ends_the_job() {
    heat::on(&node(2), 2, LONG, |heat| ends(heat, "checkpoint-breaks"));
}
