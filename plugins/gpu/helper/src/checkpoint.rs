//! What is done for one rank.

use std::sync::{Arc, OnceLock};

use stillpoint_gpu_driver::{Driver, Error, checkpoint};
use stillpoint_gpu_messages::{Answer, Request, State, VERSION};

use crate::facts;

/// The driver, begun with once, by whoever needs it first; and what became of that.
#[derive(Clone, Default)]
pub struct Begun(Arc<OnceLock<Result<Driver, String>>>);

impl Begun {
    /// Waits until it is there.
    pub fn driver(&self) -> Result<&Driver, String> {
        self.0
            .get_or_init(facts::open)
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// What the driver says of a process that does not use it: `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_NOT_INITIALIZED`.
const KNOWS_IT_NOT: [u32; 2] = [1, 3];

/// Carries a request out for the process.
pub fn carry_out(begun: &Begun, pid: i32, request: Request) -> Answer {
    if let Request::Hello { version } = request {
        return match version {
            VERSION => Answer::Done,
            _ => Answer::Failed(format!(
                "this stillpoint-gpu speaks version {VERSION}, the rank version {version}: they are of two installations; end the older job"
            )),
        };
    }
    let driver = match begun.driver() {
        Ok(driver) => driver,
        Err(reason) => return Answer::Failed(reason),
    };
    let done = |result: Result<(), Error>| match result {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Failed(error.to_string()),
    };
    match request {
        Request::Hello { .. } => Answer::Done,
        Request::Facts => match facts::of(driver) {
            Ok(facts) => Answer::Facts(facts),
            Err(reason) => Answer::Failed(reason),
        },
        Request::State => state(driver, pid),
        Request::RestoreThread => match checkpoint::restore_thread(driver, pid) {
            Ok(thread) => Answer::Thread(thread as u32),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Request::Lock { milliseconds } => match checkpoint::lock(driver, pid, milliseconds) {
            Err(error) if error.code() == Some(checkpoint::NOT_READY) => Answer::TimedOut,
            result => done(result),
        },
        Request::Checkpoint => done(checkpoint::checkpoint(driver, pid)),
        Request::Restore { pairs } => {
            let pairs: Vec<_> = pairs.into_iter().map(|(old, new)| (old.0, new.0)).collect();
            done(checkpoint::restore(driver, pid, &pairs))
        }
        Request::Unlock => done(checkpoint::unlock(driver, pid)),
    }
}

fn state(driver: &Driver, pid: i32) -> Answer {
    match checkpoint::state(driver, pid) {
        Ok(checkpoint::State::Running) => Answer::State(State::Running),
        Ok(checkpoint::State::Locked) => Answer::State(State::Locked),
        Ok(checkpoint::State::Checkpointed) => Answer::State(State::Checkpointed),
        Ok(checkpoint::State::Failed) => Answer::State(State::Failed),
        Ok(checkpoint::State::Moving) => Answer::State(State::Moving),
        Err(error)
            if error
                .code()
                .is_some_and(|code| KNOWS_IT_NOT.contains(&code)) =>
        {
            Answer::State(State::Unknown)
        }
        Err(error) => Answer::Failed(error.to_string()),
    }
}
