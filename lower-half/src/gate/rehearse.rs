//! Rehearses the stop: `STILLPOINT_REHEARSE=MILLISECONDS` stops every thread of the application that often and lets it
//! go on at once - with `MILLISECONDS,MILLISECONDS` after as long as the second one says - so that a test sees whether the
//! application notices.

use std::time::Duration;

use super::stop;
use crate::ground::say;

const VARIABLE: &str = "STILLPOINT_REHEARSE";
/// How long the threads have to stop; a child of theirs that shares their memory may hold them up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the rehearsal if it is asked for.
pub fn start() -> std::io::Result<()> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let mut times = text
        .split(',')
        .map_while(|word| word.parse().ok().map(Duration::from_millis));
    let Some(pause) = times.next() else {
        return Ok(());
    };
    let hold = times.next().unwrap_or_default();
    std::thread::Builder::new()
        .name("stillpoint-again".into())
        .spawn(move || {
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
        })?;
    Ok(())
}
