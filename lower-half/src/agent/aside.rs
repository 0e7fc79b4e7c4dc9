//! Ends the agent's thread for a moment; another thread then continues as the same agent ([`crate::ground::aside`]).

use std::sync::{Mutex, PoisonError};

use super::{Agent, user_messages};
use crate::ground::aside;

/// The agent, while no thread runs it.
static AWAY: Mutex<Option<Agent>> = Mutex::new(None);

fn away() -> std::sync::MutexGuard<'static, Option<Agent>> {
    AWAY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    /// Ends this thread's part. If the thread is to stay after all, it continues.
    pub(super) fn step_aside(self) {
        *away() = Some(self);
        if !aside::left(again) {
            again_here();
        }
    }
}

/// Continues on a thread of the application, with the lower FS.
fn again() {
    let Some(agent) = away().take() else { return };
    if let Err(error) = agent.start() {
        user_messages::say(&format!("the agent cannot go on: {error}"));
    }
}

fn again_here() {
    let agent = away().take();
    if let Some(agent) = agent {
        agent.run();
    }
}
