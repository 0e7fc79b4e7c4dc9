//! The lower half's stand-in.

use stillpoint_image::Reader;
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::launch::Launch;

use crate::support::{Agent, Builds, Character, End};

/// Set for the stand-in; its value says how it behaves.
pub const STAND_IN: &str = "STILLPOINT_TEST_RANK";

/// Not a test of its own: what the stand-in runs.
#[test]
fn a_rank_without_an_application() {
    let Ok(behaviour) = std::env::var(STAND_IN) else {
        return;
    };
    let launch = Launch::from_environment().unwrap();
    let job = JobFile::read(&launch.directory).unwrap();
    let mut character = Character::default();
    if behaviour == "refuses" {
        character.refusals = vec!["a window is open".into()];
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
        // As an application does that has lost its coordinator, until its launcher ends it.
        std::thread::sleep(crate::support::PATIENCE);
    }
    let ended_well = [End::Terminated, End::Told].contains(&end);
    std::process::exit(if ended_well { 0 } else { 1 });
}
