//! Rehearses the stop: `STILLPOINT_REHEARSE=MILLISECONDS` stops every thread of the application that often and lets it
//! go on at once, so that a test sees whether the application notices.

use std::time::Duration;

use super::stop;

const VARIABLE: &str = "STILLPOINT_REHEARSE";
/// How long the threads have to stop; a child of theirs that shares their memory may hold them up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the rehearsal if it is asked for.
pub fn start() -> std::io::Result<()> {
    let Some(pause) = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
    else {
        return Ok(());
    };
    std::thread::Builder::new()
        .name("stillpoint-again".into())
        .spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(pause));
                let stopped = stop::stop_all(PATIENCE);
                stop::release_all();
                if !stopped {
                    eprintln!("stillpoint: rehearsal: a thread did not stop within {PATIENCE:?}");
                }
            }
        })?;
    Ok(())
}
