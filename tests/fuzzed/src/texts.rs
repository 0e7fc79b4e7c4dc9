//! JSON that one process leaves for another: job.json, and the launch's variable.

use stillpoint_protocol::job_file::{JobFile, NAME};
use stillpoint_protocol::launch::Launch;

use crate::input_directory::InputDirectory;

/// DIR/job.json.
pub fn job_file(input: &[u8]) -> bool {
    let place = InputDirectory::new();
    place.file(NAME, input);
    let Ok(job) = JobFile::read(place.path()) else {
        return false;
    };
    // It gives a process id, which may be any number.
    let _ = (job.runs_here(), job.coordinator.alive());
    job.write(place.path())
        .expect("what was read can be written");
    assert_eq!(
        JobFile::read(place.path()).expect("what was written can be read"),
        job
    );
    true
}

/// The variable that tells a lower half its launch.
pub fn launch(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let Ok(launch) = Launch::from_variable(text) else {
        return false;
    };
    let again = Launch::from_variable(&launch.to_variable());
    assert_eq!(again.expect("what was written can be read"), launch);
    true
}
