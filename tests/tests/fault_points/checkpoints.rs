//! Faults while a checkpoint is written: the job runs on and the next checkpoint succeeds, or it ends with the process that
//! died; either way it carries on from the newest epoch.

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::{Failed, ensure};

use crate::case::{Case, PATIENCE, Running};

pub fn struck(case: &Case, tiers: bool) -> Result<(), Failed> {
    let stall = case.fault("stall=40");
    let first = match case.point.can_fail() {
        true => format!("{},{stall}", case.fault("fail")),
        false => stall,
    };
    // What comes only after another fault needs that one each time: a checkpoint without any would not be left.
    let alone = case.point.after().is_empty();
    let plan = match alone {
        true => format!("{first},{}", case.fault("die")),
        false => first,
    };
    let mut running = case.start(&plan, tiers)?;
    let mut strikes = 0;
    if case.point.can_fail() {
        strikes += 1;
        fails(case, &running, strikes)?;
    }
    strikes += 1;
    match alone {
        true => {
            succeeds(case, &mut running).map_err(|failed| format!("it stalls: {failed}"))?;
            case.struck(&running, strikes)?;
        }
        false => {
            fails(case, &running, strikes)?;
            succeeds(case, &mut running)?;
            case.ends_well(running)?;
            running = case.start(&case.fault("die"), tiers)?;
            strikes = 0;
        }
    }
    dies(case, running, strikes + 1)?;
    case.restarts_well()
}

/// A step fails: the job runs on.
fn fails(case: &Case, running: &Running, strikes: usize) -> Result<(), Failed> {
    let before = case.newest();
    let answer = case.checkpoint()?;
    case.consistent(before, &answer)
        .and_then(|()| case.struck(running, strikes))
        .map_err(|failed| format!("it fails: {failed}\n{}", answer.show()))
}

/// The next checkpoint is an epoch.
fn succeeds(case: &Case, running: &mut Running) -> Result<(), Failed> {
    let before = case.newest();
    let answer = case.checkpoint()?;
    let show = |failed: Failed| failed + "\n";
    let answer = answer
        .expect(exit::DONE)
        .map_err(|failed| show(failed) + &running.job.stderr())?;
    case.consistent(before, &answer)?;
    ensure!(
        running.job.runs(),
        "it does not run on: {}",
        running.job.stderr()
    );
    Ok(())
}

/// A process dies: a rank's end is the job's, a coordinator has a successor.
fn dies(case: &Case, mut running: Running, strikes: usize) -> Result<(), Failed> {
    let before = case.newest();
    let answer = case.checkpoint()?;
    case.consistent(before, &answer)
        .and_then(|()| case.struck(&running, strikes))
        .map_err(|failed| format!("it dies: {failed}\n{}", answer.show()))?;
    if case.is_the_coordinators() {
        succeeds(case, &mut running).map_err(|failed| format!("the next coordinator: {failed}"))?;
        case.ends_well(running)?;
        return Ok(());
    }
    let ended = running.job.end(PATIENCE)?;
    ensure!(
        ended.status != 0,
        "a job that lost a rank ended well: {}",
        ended.show()
    );
    Ok(())
}

/// Faults while a job is suspended: it is, or runs on and can be suspended again.
pub fn suspended(case: &Case) -> Result<(), Failed> {
    for action in ["fail", "die"] {
        if action == "fail" && !case.point.can_fail() {
            continue;
        }
        let running = case.start(&case.fault(action), false)?;
        suspend(case, running, action == "die")
            .map_err(|failed| format!("it {action}s: {failed}"))?;
    }
    case.restarts_well()
}

fn suspend(case: &Case, running: Running, dies: bool) -> Result<(), Failed> {
    let before = case.newest();
    let ask = || command::suspend(case.trial.directory, &case.trial.epochs_at());
    let answer = ask()?;
    case.consistent(before, &answer)
        .and_then(|()| case.struck(&running, 1))
        .map_err(|failed| format!("{failed}\n{}", answer.show()))?;
    if answer.status != exit::DONE && case.is_the_coordinators() {
        ask()?.expect(exit::DONE)?;
    }
    let ended = running.job.end(PATIENCE)?;
    ensure!(ended.status == 0 || dies, "{}", ended.show());
    ensure!(
        case.newest() > before,
        "no epoch was committed: {}",
        ended.show()
    );
    Ok(())
}
