//! Reports an error that all ranks share once, by rank 0.
//!
//! When rank 0 has failed, some launchers end the other ranks. Others let them run into the same error, or wait for a job that never starts. So a rank 0 that
//! fails stays for a moment and tells the ranks of its host the reason ([`launch_start`]). A rank whose own error is the same stays silent.

use std::thread;
use std::time::{Duration, Instant};

use stillpoint_ids::Rank;
use stillpoint_protocol::launch_start::{self, LaunchFailure};

use super::launch::LaunchPosition;
use super::{CommandResult, Failure};

/// The time that another rank that has failed waits for rank 0's message. After it, the rank reports its own error.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// Reports the outcome of a rank's part of a launch, unless rank 0 has reported the same.
pub fn with_one_voice(place: &LaunchPosition, outcome: CommandResult) -> CommandResult {
    let Err(failure) = &outcome else {
        return outcome;
    };
    if place.size == 1 || failure.is_silent() {
        return outcome;
    }
    if place.rank == Rank::FIRST {
        // It is printed before the others end: a launcher may end this process with them.
        failure.say();
        tell(place, failure);
        return Err(Failure::silent(failure.status));
    }
    let failed = Instant::now();
    while failed.elapsed() < PATIENCE {
        match heard(place) {
            Some(said) if said.to_string() == failure.to_string() => {
                return Err(Failure::silent(said.status));
            }
            Some(_) => break,
            None => thread::sleep(PAUSE),
        }
    }
    outcome
}

/// The reason why rank 0 of this launch has failed, if it has, and is on this host.
fn heard(place: &LaunchPosition) -> Option<Failure> {
    launch_start::heard(&place.launch).map(|ended| Failure::new(ended.status, ended.text))
}

/// Tells the other ranks of this host why rank 0, this process, has failed.
fn tell(place: &LaunchPosition, failure: &Failure) {
    let why = LaunchFailure {
        status: failure.status,
        text: failure.to_string(),
    };
    launch_start::tell(&place.launch, place.size - 1, &why);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: Rank, launch: &str) -> LaunchPosition {
        LaunchPosition {
            rank,
            size: 3,
            launch: format!("{launch}-{}", std::process::id()),
            one_host: true,
            mpi: None,
        }
    }

    fn ended(rank: Rank, launch: &'static str, text: &'static str) -> thread::JoinHandle<Failure> {
        thread::spawn(move || {
            let failed = Err(Failure::new(126, text));
            with_one_voice(&place(rank, launch), failed).unwrap_err()
        })
    }

    #[test]
    fn ranks_say_only_what_rank_0_has_not_said() {
        let ranks = ["all", "all", "mine"];
        let ranks = [0, 1, 2].map(|rank| ended(Rank::at(rank), "same", ranks[rank]));
        let said = ranks.map(|rank| rank.join().unwrap());
        assert_eq!(said.each_ref().map(ToString::to_string), ["", "", "mine"]);
        assert!(said.iter().all(|failure| failure.status == 126));
    }

    #[test]
    fn a_rank_that_waits_hears_that_nobody_will_come() {
        let (first, second) = (place(Rank(0), "waits"), place(Rank(1), "waits"));
        assert!(heard(&second).is_none());
        let failing = thread::spawn(move || with_one_voice(&first, Err(Failure::failed("full"))));
        let began = Instant::now();
        let why = loop {
            match heard(&second) {
                Some(why) => break why,
                None => assert!(began.elapsed() < PATIENCE),
            }
        };
        assert_eq!((why.to_string(), why.status), ("full".to_owned(), 1));
        assert!(failing.join().unwrap().unwrap_err().is_silent());
    }
}
