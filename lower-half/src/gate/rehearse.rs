//! Tests the stop: `STILLPOINT_REHEARSE=MILLISECONDS` repeatedly stops every thread of the application and lets it continue at once, or, with
//! `MILLISECONDS,MILLISECONDS`, after the second time. A test then sees whether the application notices.

use std::thread::JoinHandle;
use std::time::Duration;

use super::stop;
use crate::ground::{say, thread};

const VARIABLE: &str = "STILLPOINT_REHEARSE";
/// How long the threads have to stop; a child that shares their memory may delay them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the rehearsal if the variable asks for it.
pub fn start() -> std::io::Result<()> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let mut times = text
        .split(',')
        .map_while(|word| word.parse().ok().map(Duration::from_millis));
    let Some(pause) = times.next() else {
        return Ok(());
    };
    let hold = times.next().unwrap_or_default();
    let again = move || {
        loop {
            std::thread::sleep(pause);
            let stopped = stop::stop_all(PATIENCE);
            std::thread::sleep(hold);
            stop::release_all();
            if !stopped {
                say::line(format_args!(
                    "rehearsal: a thread did not stop within {PATIENCE:?}"
                ));
            }
        }
    };
    thread::start("stillpoint-again", thread::LARGE, again).map(|_: JoinHandle<()>| ())
}
