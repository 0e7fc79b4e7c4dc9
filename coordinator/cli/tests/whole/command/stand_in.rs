//! The lower half's stand-in.

use std::fs::File;

use stillpoint_image::Reader;
use stillpoint_protocol::job_file::{JobFile, JobState};
use stillpoint_protocol::launch::Launch;
use stillpoint_protocol::launch_start::{self, Awaits, Missing};
use stillpoint_protocol::safe_text;
use stillpoint_refusals::refusal;

use crate::support::{Agent, Builds, Character, End};

/// Set for the stand-in; the value selects its behaviour.
pub const STAND_IN: &str = "STILLPOINT_TEST_RANK";

/// Not a test of its own: the stand-in runs this.
#[test]
fn a_rank_without_an_application() {
    // Without a launch, this runs as one of the tests.
    let Ok(launch) = Launch::from_environment() else {
        return;
    };
    let job = joined(&launch);
    let Ok(behaviour) = std::env::var(STAND_IN) else {
        return;
    };
    let mut character = Character::default();
    if behaviour == "refuses" {
        character.refusals = vec![refusal!(MpiWindow, "a window is open")];
    }
    if behaviour == "builds" {
        let before = launch.restart.as_ref().map(|restart| {
            let reader = Reader::open(&restart.image).unwrap();
            Builds::upon(reader.base())
        });
        character.builds = Some(before.unwrap_or_default());
    }
    let agent = Agent::connect(&job, launch.rank, character);
    match behaviour.as_str() {
        "fails" => {
            let status = 7;
            agent.send(&stillpoint_protocol::agent::FromAgent::Exiting { status });
            std::process::exit(status);
        }
        "dies" => std::process::abort(),
        _ => {}
    }
    let end = agent.live();
    if behaviour == "stays" {
        // It stays like an application that has lost its coordinator, until its launcher ends it.
        std::thread::sleep(crate::support::PATIENCE);
    }
    let ended_well = [End::Terminated, End::Told].contains(&end);
    std::process::exit(if ended_well { 0 } else { 1 });
}

/// Waits for the job of the launch. If the launch fails or there is nothing to start, the process ends.
fn joined(launch: &Launch) -> JobFile {
    match launch.awaits {
        Some(Awaits::Coordinator { answer, first }) => {
            // This opens the pipe once more; the inherited descriptor stays open, which does no harm here.
            let answer = File::open(format!("/proc/self/fd/{answer}")).unwrap();
            if let Err(why) = launch_start::hear(answer, first) {
                eprintln!("stillpoint: {}", safe_text::line(&why.to_string()));
                launch_start::tell(&launch.launch, launch.size.saturating_sub(1), &why);
                std::process::exit(why.status.into());
            }
        }
        Some(Awaits::Job) => match launch_start::wait_for_job(&launch.launch, &launch.directory) {
            Ok(job) if job.state == JobState::Finished => std::process::exit(0),
            Ok(job) => return job,
            Err(Missing::Told(why)) => std::process::exit(why.status.into()),
            Err(missing) => panic!("{missing}"),
        },
        None => {}
    }
    JobFile::read(&launch.directory).unwrap()
}
