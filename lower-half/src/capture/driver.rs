//! What the parked driver thread is asked for, and its answer. It carries out the upper half's own steps of a checkpoint.

use std::time::{Duration, Instant};

use stillpoint_part::{Done, Failure};
use stillpoint_wrappers::gate::{Command, DriverState};

use super::still::Still;

/// How long it may take over one command. It does nothing but its own work then.
const ANSWER: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_micros(50);

/// Gives it a command and waits for its answer.
fn command(still: &Still<'_>, command: Command, answer: DriverState, what: &str) -> Done {
    let inside = still.enter()?;
    still.page().command(command);
    drop(inside);
    until(still, what, || still.page().driver_state() == answer as u32)
}

/// Waits until something is so that only the driver thread can bring about.
fn until(still: &Still<'_>, what: &str, so: impl Fn() -> bool) -> Done {
    let end = Instant::now() + ANSWER;
    while !so() {
        if still.access().revoked() {
            return Err(Failure::GivenUp);
        }
        if Instant::now() >= end {
            return Err(Failure::Refused(format!(
                "the program's main thread did not answer within {} s ({what}); the job runs on",
                ANSWER.as_secs()
            )));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// What forbids a checkpoint, as far as the upper half knows.
///
/// # Errors
/// It does not answer, or the checkpoint has been given up.
pub fn check(still: &Still<'_>) -> Result<Vec<String>, Failure> {
    command(still, Command::Check, DriverState::Checked, "the check")?;
    let _inside = still.enter()?;
    Ok(still.page().refusals())
}

/// One whole round of pulling messages in.
///
/// # Errors
/// As [`check`]; what the round has found that forbids the checkpoint.
pub fn drain(still: &Still<'_>) -> Done {
    let page = still.page();
    let before = page.rounds();
    command(still, Command::Drain, DriverState::Draining, "the drain")?;
    // One that began after the command.
    until(still, "the drain", || {
        page.rounds().wrapping_sub(before) >= 2
    })?;
    nothing_found(still)
}

/// Messages, requests and objects get the form that a restart starts from.
///
/// # Errors
/// As [`drain`].
pub fn seal(still: &Still<'_>) -> Done {
    let what = "sealing its MPI objects";
    command(still, Command::Seal, DriverState::Sealed, what)?;
    nothing_found(still)
}

/// It touches nothing from here on, until the checkpoint ends. It may hold already.
///
/// # Errors
/// As [`check`].
pub fn hold(still: &Still<'_>) -> Done {
    if still.page().driver_state() == DriverState::Held as u32 {
        return Ok(());
    }
    command(still, Command::Hold, DriverState::Held, "holding still")
}

/// What the upper half has found after the check is told as if it had been found there.
fn nothing_found(still: &Still<'_>) -> Done {
    let _inside = still.enter()?;
    match still.page().refusals() {
        refusals if refusals.is_empty() => Ok(()),
        refusals => Err(Failure::Hindered(refusals)),
    }
}
