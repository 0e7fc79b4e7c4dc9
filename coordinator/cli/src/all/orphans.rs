//! Ranks of which no job is known: no entry in the registry leads to them, or none that can be read.
//!
//! They have no coordinator that could be asked. But each of them takes a signal for a wish to be suspended, and gets it if it handles
//! it: a process that does not would end by it.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::jobs::{Round, leave};
use super::ranks::{Held, Name};
use super::words::{Deed, End, Job, Word};
use crate::Failure;

/// What means suspend, where a launch has chosen no other.
const SUSPEND: Signal = Signal::USR1;
/// How often they are looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// A job whose job.json cannot be read, and why. Ranks of which nothing else is known may be its.
pub struct Unreadable {
    pub key: String,
    pub why: String,
    pub status: u8,
}

/// Attends to them; `everything`: no job of this user is left out.
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
            why: "no job is known of them".to_owned(),
            status: Failure::MISSING,
        };
        let pids: Vec<String> = ranks.iter().map(|rank| rank.pid.to_string()).collect();
        round.speaker.say(&Word::Found(Job {
            key: found.key.clone(),
            name: format!("processes {}", pids.join(", ")),
            directory: String::new(),
        }));
        unreadable.push(found);
    }
    let count = ranks.len();
    let (ranks, signalled) = match round.task.deed {
        Deed::Suspend => suspended(round, ranks),
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
        _ => format!("; {signalled} ranks of which no job can be read got SIGUSR1, and run on"),
    };
    let left = leave(round.task.left, ranks);
    for Unreadable { key, why, status } in unreadable {
        let why = format!("{why}{told}");
        let left = left.clone();
        round.ended(&key, End::Stays { why, status, left });
    }
}

/// Sends the signal to those that handle it, and waits for their end; who is still there, and how many got it.
fn suspended(round: &Round<'_>, mut ranks: Vec<Held>) -> (Vec<Held>, usize) {
    let got = |rank: &&Held| rank.catches(SUSPEND) && rank.signal(SUSPEND);
    let signalled = ranks.iter().filter(got).count();
    while signalled > 0 && !ranks.is_empty() && !round.left().is_zero() {
        thread::sleep(PAUSE);
        ranks.retain(Held::runs);
    }
    (ranks, signalled)
}
