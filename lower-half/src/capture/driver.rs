//! Commands to the parked driver thread, which carries out the upper half's own steps of a checkpoint.

use std::time::{Duration, Instant};

use stillpoint_part::{Done, Failure};
use stillpoint_refusals::{Refusal, refusal};
use stillpoint_wrappers::gate::{Command, DriverState};

use super::stopped_process::Still;

/// How long the driver thread may take for one command. It only does its own work then.
const ANSWER: Duration = Duration::from_secs(60);
/// The time between two looks at its answer.
const LOOK: Duration = Duration::from_micros(50);

/// Gives the driver thread a command and waits for its answer.
fn command(still: &Still<'_>, command: Command, answer: DriverState, what: &str) -> Done {
    let inside = still.enter()?;
    still.page().command(command);
    drop(inside);
    until(still, what, || still.page().driver_state() == answer as u32)
}

/// Waits for a condition that only the driver thread can bring about.
fn until(still: &Still<'_>, what: &str, so: impl Fn() -> bool) -> Done {
    let end = Instant::now() + ANSWER;
    while !so() {
        if still.access().revoked() {
            return Err(Failure::GivenUp);
        }
        if Instant::now() >= end {
            return Err(Failure::Refused(refusal!(
                NoAnswer,
                "the program's main thread did not answer within {} s ({what}); the job runs on",
                ANSWER.as_secs()
            )));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns what forbids a checkpoint, as far as the upper half knows.
///
/// # Errors
/// The driver thread does not answer, or the checkpoint has been given up.
pub fn check(still: &Still<'_>) -> Result<Vec<Refusal>, Failure> {
    command(still, Command::Check, DriverState::Checked, "the check")?;
    let _inside = still.enter()?;
    Ok(still.page().refusals())
}

/// Lets it carry out one whole round of receiving messages.
///
/// # Errors
/// Those of [`check`], and whatever the round finds that forbids the checkpoint.
pub fn drain(still: &Still<'_>) -> Done {
    let page = still.page();
    let before = page.rounds();
    command(still, Command::Drain, DriverState::Draining, "the drain")?;
    // The round must have begun after the command.
    until(still, "the drain", || {
        page.rounds().wrapping_sub(before) >= 2
    })?;
    nothing_found(still)
}

/// Gives messages, requests and objects the form that a restart starts from.
///
/// # Errors
/// Those of [`drain`].
pub fn seal(still: &Still<'_>) -> Done {
    let what = "sealing its MPI objects";
    command(still, Command::Seal, DriverState::Sealed, what)?;
    nothing_found(still)
}

/// Makes it touch nothing from here on, until the checkpoint ends. It may hold already.
///
/// # Errors
/// Those of [`check`].
pub fn hold(still: &Still<'_>) -> Done {
    if still.page().driver_state() == DriverState::Held as u32 {
        return Ok(());
    }
    command(still, Command::Hold, DriverState::Held, "holding still")
}

/// Reports what the upper half has found after the check as if the check had found it.
fn nothing_found(still: &Still<'_>) -> Done {
    let _inside = still.enter()?;
    match still.page().refusals() {
        refusals if refusals.is_empty() => Ok(()),
        refusals => Err(Failure::Hindered(refusals)),
    }
}
