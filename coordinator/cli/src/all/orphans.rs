//! Ranks of unknown jobs: no registry entry leads to them, or none that can be read.
//!
//! They have no coordinator to ask. But a signal asks a rank for a suspend, so each rank that handles the signal gets it. Any other process would end by it.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::jobs::{Round, leave};
use super::messages::{Action, End, HelperMessage, Job};
use super::ranks::{Held, Name};
use crate::Failure;

/// The signal that asks for a suspend, unless a launch has chosen another.
const SUSPEND: Signal = Signal::USR1;
/// The pause between two looks at them.
const PAUSE: Duration = Duration::from_millis(100);

/// A job whose job.json cannot be read, and the reason. Ranks of an unknown job may belong to it.
pub struct Unreadable {
    pub key: String,
    pub why: String,
    pub status: u8,
}

/// Attends to these ranks; `everything`: the filter includes all jobs of this user.
pub fn all(
    round: &Round<'_>,
    ranks: Vec<(Name, Held)>,
    known: &BTreeSet<Name>,
    mut unreadable: Vec<Unreadable>,
    everything: bool,
) {
    let ranks: Vec<Held> = match everything {
        true => ranks
            .into_iter()
            .filter(|(name, rank)| !known.contains(name) && rank.runs())
            .map(|(_, rank)| rank)
            .collect(),
        false => vec![],
    };
    if unreadable.is_empty() {
        if ranks.is_empty() {
            return;
        }
        let found = Unreadable {
            key: "ranks".to_owned(),
            why: "they belong to no known job".to_owned(),
            status: Failure::MISSING,
        };
        let pids: Vec<String> = ranks.iter().map(|rank| rank.pid.to_string()).collect();
        round.speaker.say(&HelperMessage::Found(Job {
            key: found.key.clone(),
            name: format!("processes {}", pids.join(", ")),
            directory: String::new(),
        }));
        unreadable.push(found);
    }
    let count = ranks.len();
    let (ranks, signalled) = match round.task.deed {
        Action::Suspend => suspended(round, ranks),
        _ => (ranks, 0),
    };
    if count > 0 && ranks.is_empty() {
        for job in unreadable {
            round.ended(&job.key, End::Signalled { ranks: count });
        }
        return;
    }
    let told = match signalled {
        0 => String::new(),
        _ => {
            format!("; {signalled} ranks without a readable job got SIGUSR1 and are still running")
        }
    };
    let left = leave(round.task.left, ranks);
    for Unreadable { key, why, status } in unreadable {
        let why = format!("{why}{told}");
        let left = left.clone();
        round.ended(
            &key,
            End::Stays {
                why,
                codes: vec![],
                status,
                left,
            },
        );
    }
}

/// Sends the signal to the ranks that handle it, and waits for their end. Returns the ranks that are still there, and the number of those that got it.
fn suspended(round: &Round<'_>, mut ranks: Vec<Held>) -> (Vec<Held>, usize) {
    let got = |rank: &&Held| rank.catches(SUSPEND) && rank.signal(SUSPEND);
    let signalled = ranks.iter().filter(got).count();
    while signalled > 0 && !ranks.is_empty() && !round.left().is_zero() {
        thread::sleep(PAUSE);
        ranks.retain(Held::runs);
    }
    (ranks, signalled)
}
