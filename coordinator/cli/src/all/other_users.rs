//! Requests of an operator who is not root to other users' jobs: a suspend, at their doors. The operator learns the result, and nothing else.

use std::thread;
use std::time::Instant;

use nix::unistd::geteuid;

use super::messages::{End, Job, Task};
use super::reports::Progress;
use super::supervise::JobResults;
use crate::Failure;
use crate::request::{CheckpointRequest, converse};
use crate::target::Coordinator;
use stillpoint_coordinator::door::{self, Visit};

/// The most doors to ask at, since any user may make doors.
const MOST: usize = 1000;
/// The characters shown of a launch's id, of no use to anybody but the job's user.
const SHOWN: usize = 8;

/// Asks all of them at once. A job ignores users who are not among its operators, and the result leaves it out.
pub fn suspended(task: &Task, users: Option<&[u32]>, quiet: bool) -> JobResults {
    let this = geteuid().as_raw();
    let meant = |user: u32| users.is_none_or(|users| users.contains(&user));
    let doors = door::all().into_iter();
    let doors = doors.filter(|(user, _)| *user != this && meant(*user));
    let asked: Vec<_> = doors
        .take(MOST)
        .filter_map(|(user, launch)| {
            let visit = Visit::pay(user, &launch).ok()?;
            let wanted = CheckpointRequest {
                suspend: true,
                timeout: Some(task.timeout.time()),
                waits: task.waits,
                asked: task.asked.clone(),
            };
            let asking = thread::spawn(move || ask(visit, &wanted));
            Some((user, launch, asking))
        })
        .collect();
    let mut progress = Progress::new(quiet);
    let mut heard = vec![];
    for (user, launch, asking) in asked {
        let Ok(Some(end)) = asking.join() else {
            continue;
        };
        let shown: String = launch.chars().take(SHOWN).collect();
        let job = Job {
            name: format!("a job, launch {shown}"),
            key: launch,
            directory: String::new(),
        };
        progress.found();
        progress.ended(user, &job, &end);
        heard.push((user, job, end));
    }
    heard
}

/// Asks one job; `None`: the door was closed without an answer.
fn ask(visit: Visit, wanted: &CheckpointRequest) -> Option<End> {
    let mut answered = false;
    let came = converse(
        &mut Coordinator::Visited(visit),
        wanted,
        Instant::now(),
        &|failure| failure,
        &mut |told| answered |= told.is_an_answer(),
    );
    match came {
        Ok(outcome) => Some(End::Epoch {
            epoch: outcome.epoch,
            bytes: outcome.stored_bytes,
            seconds: outcome.phases.iter().map(|(_, seconds)| seconds).sum(),
            suspended: outcome.suspended,
        }),
        Err(failure) if answered || failure.status == Failure::REFUSED => Some(End::Stays {
            why: failure.to_string(),
            codes: failure.codes(),
            status: failure.status,
            left: None,
        }),
        Err(_) => None,
    }
}
