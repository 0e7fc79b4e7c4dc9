//! Fault points of ranks with GPUs; a test strikes each of them.

use stillpoint_faults::{Point, Run, VARIABLE};
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, PATIENCE, node};

fn points(run: Run) -> impl Iterator<Item = Point> {
    let all = Point::ALL.iter().copied();
    all.filter(move |point| point.runs().iter().any(|(its, _)| *its == run))
}

/// Tests a point of a checkpoint. If the step fails, there is no epoch, and the job runs on. If it is slow, there is an epoch. If the
/// rank dies, the job ends, and restarts.
fn in_a_checkpoint(heat: &Heat, point: Point) -> Result<(), Failed> {
    let natively = heat.natively()?;
    let name = point.name();
    let fail = match point.can_fail() {
        true => format!("{name}:1:fail,"),
        false => String::new(),
    };
    let plan = format!("{fail}{name}:1:stall=40,{name}:1:die");
    let job = heat.start_with(&[], &[(VARIABLE, &plan)])?;
    if point.can_fail() {
        // The request does not wait: a later attempt would succeed.
        let answer = command::checkpoint(heat.directory, heat.target())?;
        ensure!(
            answer.status != exit::DONE && command::epochs(heat.target()).is_empty(),
            "it was to fail: {}",
            answer.show()
        );
    }
    heat.checkpoint()?.expect(exit::DONE)?;
    let _ = heat.checkpoint()?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status != 0, "the rank lives: {}", ended.show());
    let job = heat.restarted()?;
    heat.ends_as(job, &natively)
}

#[test]
fn every_step_of_a_checkpoint() {
    for point in points(Run::Gpu) {
        heat::on(&node(2), 2, LONG, |heat| {
            in_a_checkpoint(heat, point).map_err(|failed| format!("{}: {failed}", point.name()))
        });
    }
}

/// Tests a step of a restart that fails, or in which the rank dies: the epoch is unchanged.
fn in_a_restart(heat: &Heat) -> Result<(), Failed> {
    let natively = heat.natively()?;
    let job = heat.start(&[])?;
    heat.suspend(job)?;
    for point in points(Run::GpuRestart) {
        for action in ["fail", "die"] {
            let plan = format!("{}:1:{action}", point.name());
            let ended = heat.restart(&[(VARIABLE, &plan)])?.end(PATIENCE)?;
            ensure!(ended.status != 0, "{plan}: {}", ended.show());
            ensure!(
                action == "die" || ended.stderr.contains(point.name()),
                "{plan}: {}",
                ended.show()
            );
        }
    }
    let job = heat.restarted()?;
    heat.ends_as(job, &natively)
}

#[test]
fn every_step_of_a_restart() {
    heat::on(&node(2), 2, LONG, |heat| in_a_restart(heat));
}
