//! A helper's way to speak to the command, and the doors that it has knocked at.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use stillpoint_coordinator::door::Visit;

use super::messages::HelperMessage;

/// The doors of a user's jobs that this process has knocked at, by launch.
pub type Visits = BTreeMap<String, Visit>;

/// Speaks to the command: one line for each word, from any thread.
#[derive(Clone, Default)]
pub struct Speaker {
    turn: Arc<Mutex<()>>,
}

impl Speaker {
    pub fn say(&self, word: &HelperMessage) {
        let Ok(line) = serde_json::to_string(word) else {
            return;
        };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = std::io::stdout().lock();
        // If the command has gone, the request goes on all the same.
        let _ = out
            .write_all((line + "\n").as_bytes())
            .and_then(|()| out.flush());
    }
}
