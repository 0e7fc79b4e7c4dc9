//! Faults while a checkpoint is written: the job runs on and the next checkpoint succeeds, or it ends with the process that
//! died; either way it carries on from the newest epoch.

use stillpoint_faults::Point;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::{Failed, ensure};

use crate::case::{Case, How, PATIENCE, Running};

/// Points that a checkpoint passes more than once: two entries in turn may strike in the same checkpoint.
const AGAIN_AND_AGAIN: [Point; 13] = [
    Point::Drain,
    Point::ImagePages,
    Point::PruneRename,
    Point::PruneRemove,
    Point::FastMake,
    Point::FastCreate,
    Point::FastWrite,
    Point::SlowWrite,
    Point::PeerSend,
    Point::PeerKeep,
    Point::FlushRead,
    Point::FlushWrite,
    Point::FlushSync,
];
/// The most checkpoints until one reaches the point: some clear up after an earlier one.
const TRIES: u32 = 3;

pub fn struck(case: &Case, how: How) -> Result<(), Failed> {
    let told = |action: &'static str| move |failed: Failed| format!("{action}: {failed}");
    let [fail, stall, die] = ["fail", "stall=40", "die"].map(|action| case.fault(action));
    let fails = case.point.can_fail();
    let first = match fails {
        true => format!("{fail},{stall}"),
        false => stall,
    };
    // At a point that comes only after another fault, the process would die before a checkpoint has succeeded.
    let apart = !case.point.after().is_empty() || AGAIN_AND_AGAIN.contains(&case.point);
    let plan = match apart {
        true => first,
        false => format!("{first},{die}"),
    };
    let mut running = case.start(&plan, how)?;
    let mut strikes = 0;
    if fails {
        strikes += 1;
        until_struck(case, &running, strikes).map_err(told("fail"))?;
    }
    strikes += 1;
    let answer = until_struck(case, &running, strikes).map_err(told("stall"))?;
    let clean = answer.is_some_and(|answer| answer.status == exit::DONE);
    if case.point.after().is_empty() {
        ensure!(clean, "a step that takes longer made the checkpoint fail");
    }
    if !clean || apart {
        succeeds(case, &mut running).map_err(told("the next one"))?;
    }
    if apart {
        case.ends_well(running)?;
        running = case.start(&die, how)?;
        strikes = 0;
    }
    until_struck(case, &running, strikes + 1).map_err(told("die"))?;
    match case.is_the_coordinators() {
        true => {
            succeeds(case, &mut running).map_err(told("the next coordinator"))?;
            case.ends_well(running)?;
        }
        false => {
            let ended = running.job.end(PATIENCE)?;
            ensure!(
                ended.status != 0,
                "a job that lost a rank ended well: {}",
                ended.show()
            );
        }
    }
    case.restarts_well()
}

/// Asks for checkpoints until the point has been struck so often, and returns the last answer.
fn until_struck(case: &Case, running: &Running, strikes: usize) -> Result<Option<Answer>, Failed> {
    let mut latest = None;
    for _ in 0..TRIES {
        if latest.is_some() && case.has_been_struck(running, strikes) {
            break;
        }
        let before = case.newest();
        let answer = case.checkpoint()?;
        case.consistent(before, &answer)?;
        latest = Some(answer);
        if case.point.after().is_empty() {
            break;
        }
    }
    case.struck(running, strikes)?;
    Ok(latest)
}

/// Checks that a checkpoint commits an epoch and that the job runs on.
fn succeeds(case: &Case, running: &mut Running) -> Result<(), Failed> {
    let before = case.newest();
    let answer = case.checkpoint()?.expect(exit::DONE);
    let answer = answer.map_err(|failed| format!("{failed}\n{}", running.job.stderr()))?;
    case.consistent(before, &answer)?;
    ensure!(
        running.job.runs(),
        "it does not run on: {}",
        running.job.stderr()
    );
    Ok(())
}

/// Strikes faults while a job is suspended: it is suspended, or runs on and can be suspended again.
pub fn suspended(case: &Case) -> Result<(), Failed> {
    for action in ["fail", "die"] {
        if action == "fail" && !case.point.can_fail() {
            continue;
        }
        let running = case.start(&case.fault(action), How::Plainly)?;
        suspend(case, running, action == "die").map_err(|failed| format!("{action}: {failed}"))?;
    }
    case.restarts_well()
}

fn suspend(case: &Case, running: Running, dies: bool) -> Result<(), Failed> {
    let before = case.newest();
    let target = case.trial.epochs_at();
    let ask = || command::suspend(case.trial.directory, &target);
    let answer = ask()?;
    // If no process is left to confirm the suspend, the command reports how the job has ended.
    let over = answer.status == exit::NO_SUCH && answer.stderr.contains("it is suspended");
    if !over {
        case.consistent(before, &answer)?;
    }
    case.struck(&running, 1)?;
    if answer.status != exit::DONE && !over && case.is_the_coordinators() {
        let again = ask()?;
        let over = again.status == exit::NO_SUCH && again.stderr.contains("it is suspended");
        ensure!(
            over || again.status == exit::DONE,
            "it cannot be suspended again: {}\n{}",
            answer.show(),
            again.show()
        );
    }
    let ended = running.job.end(PATIENCE)?;
    ensure!(ended.status == 0 || dies, "{}", ended.show());
    ensure!(
        case.newest() > before,
        "no epoch was committed: {}",
        ended.show()
    );
    let state = command::state(case.trial.directory, &target)?;
    ensure!(state == "suspended", "it is '{state}'");
    Ok(())
}
