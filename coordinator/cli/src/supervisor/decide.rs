//! The step after the end of a launch: nothing, or another launch, from which epoch, and after which pause. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stillpoint_ids::Epoch;
use stillpoint_protocol::job_file::JobState;

/// A launch that ends earlier than this without a new epoch has failed at once.
pub const AT_ONCE: Duration = Duration::from_secs(10);
/// Failures at once after which an epoch is not tried any more.
const TIMES: u32 = 3;
/// The pauses before another launch: the first one, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The end of a launch.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The job's last state; `None`: the launch never came to a job.
    pub state: Option<JobState>,
    /// The application's own status, if it ended by itself.
    pub exit_status: Option<i32>,
    /// The reason for a failure, in words.
    pub reason: String,
    /// The epoch that the launch carried on from, or was to carry on from.
    pub from: Option<Epoch>,
    /// The epochs that are there now, oldest first, with a staged one.
    pub epochs: Vec<Epoch>,
    pub lasted: Duration,
    /// Whether all ranks have been there. A launch without them has failed at once, however long it took.
    pub came_up: bool,
    /// Somebody has told the supervisor to end.
    pub stopped: bool,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The job is over: the supervisor ends as the launcher did.
    Over,
    /// The job has failed, and no launch can help. The reason is for people.
    GiveUp(String),
    Again(Again),
}

/// Another launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The epoch that it carries on from; `None`: it begins again.
    pub from: Option<Epoch>,
    /// Whether that is not the newest one.
    pub earlier: bool,
    pub pause: Duration,
    /// The event and the step after it, for people.
    pub told: String,
}

/// The launches so far.
#[derive(Debug)]
pub struct History {
    /// The most restarts.
    most: u32,
    restarts: u32,
    /// The newest epoch that was there before the last launch.
    newest: Option<Epoch>,
    /// Launches in a row without a new epoch.
    in_vain: u32,
    /// How often in a row launches from an epoch (`None`: from the beginning) have failed at once.
    at_once: BTreeMap<Option<Epoch>, u32>,
    given_up: BTreeSet<Epoch>,
}

impl History {
    /// `newest`: the newest epoch that the first launch finds and does not give up.
    pub fn new(most: u32, newest: Option<Epoch>) -> History {
        History {
            most,
            restarts: 0,
            newest,
            in_vain: 0,
            at_once: BTreeMap::new(),
            given_up: BTreeSet::new(),
        }
    }

    /// Takes the end of a launch in, and says what follows.
    pub fn next(&mut self, ended: &Ended) -> Next {
        match (ended.state, ended.exit_status) {
            _ if ended.stopped => return Next::Over,
            (Some(JobState::Finished | JobState::Suspended), _) => return Next::Over,
            // The application has ended by itself: it would do so again.
            (Some(JobState::Failed), Some(_)) => return Next::Over,
            // A job that cannot start at all is a mistake of the user.
            (None, _) if self.restarts == 0 => return Next::Over,
            _ => {}
        }
        let newest = ended.epochs.last().copied();
        let progress = ended.state.is_some() && newest > self.newest;
        self.newest = newest;
        let mut told = ended.reason.clone();
        match progress {
            true => self.in_vain = 0,
            false => self.in_vain += 1,
        }
        // A launch that came to no job says nothing about its epoch.
        if ended.state.is_some() {
            let failed = self.at_once.entry(ended.from).or_default();
            match !progress && (!ended.came_up || ended.lasted < AT_ONCE) {
                true => *failed += 1,
                false => *failed = 0,
            }
            if let (Some(from), true) = (ended.from, *failed >= TIMES) {
                self.given_up.insert(from);
                told = format!("{told}; epoch {from} has failed at once {TIMES} times in a row");
            }
        }
        if self.restarts >= self.most {
            return Next::GiveUp(format!(
                "{told}; the job has been restarted {} times, which is the limit (--restarts)",
                self.restarts
            ));
        }
        let usable = ended.epochs.iter().rev();
        let mut usable = usable.filter(|epoch| !self.given_up.contains(epoch));
        let chosen = usable.next().copied();
        if chosen.is_none() && newest.is_some() {
            return Next::GiveUp(format!("{told}; no other epoch is left"));
        }
        self.restarts += 1;
        let doublings = self.in_vain.saturating_sub(1).min(16);
        let pause = (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE);
        let place = match chosen {
            Some(epoch) => format!("from epoch {epoch}"),
            None => "from its beginning".to_owned(),
        };
        Next::Again(Again {
            from: chosen,
            earlier: chosen != newest,
            pause,
            told: format!(
                "{told}; restart {} of at most {} {place} in {} s",
                self.restarts,
                self.most,
                pause.as_secs()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(from: Option<Epoch>, epochs: &[Epoch], seconds: u64) -> Ended {
        Ended {
            state: Some(JobState::Failed),
            exit_status: None,
            reason: "rank 1 has died".into(),
            from,
            epochs: epochs.to_vec(),
            lasted: Duration::from_secs(seconds),
            came_up: true,
            stopped: false,
        }
    }

    fn again(next: Next) -> Again {
        match next {
            Next::Again(again) => again,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_job_that_came_to_an_end_of_its_own_is_over() {
        let with = |state, exit_status| Ended {
            state: Some(state),
            exit_status,
            ..lost(None, &[Epoch(1)], 5)
        };
        for ended in [
            with(JobState::Finished, Some(0)),
            with(JobState::Suspended, None),
            with(JobState::Failed, Some(3)),
            Ended {
                stopped: true,
                ..lost(None, &[Epoch(1)], 5)
            },
            Ended {
                state: None,
                ..lost(None, &[], 0)
            },
        ] {
            assert_eq!(History::new(9, None).next(&ended), Next::Over, "{ended:?}");
        }
    }

    #[test]
    fn a_lost_rank_or_launcher_leads_to_the_newest_epoch() {
        let mut history = History::new(9, None);
        let first = again(history.next(&lost(None, &[Epoch(1), Epoch(2)], 300)));
        assert_eq!((first.from, first.earlier), (Some(Epoch(2)), false));
        assert_eq!(first.pause.as_secs(), 1);
        assert!(first.told.contains("restart 1 of at most 9 from epoch 2"));
        // A coordinator that has gone with its ranks has left the state at running.
        let silent = Ended {
            state: Some(JobState::Running),
            ..lost(Some(Epoch(2)), &[Epoch(2), Epoch(3)], 300)
        };
        assert_eq!(again(history.next(&silent)).from, Some(Epoch(3)));
        // A restart that does not come to a job is tried again.
        let never = Ended {
            state: None,
            ..lost(Some(Epoch(3)), &[Epoch(2), Epoch(3)], 40)
        };
        again(history.next(&never));
    }

    #[test]
    fn without_an_epoch_it_begins_again() {
        let mut history = History::new(9, None);
        let first = again(history.next(&lost(None, &[], 300)));
        assert!(first.told.contains("from its beginning"), "{}", first.told);
    }

    #[test]
    fn the_pause_grows_until_a_launch_has_written_an_epoch() {
        let mut history = History::new(99, Some(Epoch(4)));
        let pauses: Vec<u64> = (0..9)
            .map(|_| {
                again(history.next(&lost(Some(Epoch(4)), &[Epoch(4)], 100)))
                    .pause
                    .as_secs()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let fresh = again(history.next(&lost(Some(Epoch(4)), &[Epoch(4), Epoch(5)], 100)));
        assert_eq!(fresh.pause.as_secs(), 1);
    }

    #[test]
    fn an_epoch_that_fails_at_once_three_times_is_left_for_the_one_before() {
        let mut history = History::new(99, Some(Epoch(6)));
        let epochs = [4, 5, 6].map(Epoch);
        let chosen = [6, 6, 6, 5, 5, 5].map(|from| {
            let from = Epoch(from);
            let next = again(history.next(&lost(Some(from), &epochs, 2)));
            let words = format!("epoch {from} has failed at once 3 times");
            assert_eq!(next.told.contains(&words), next.from != Some(from));
            (next.from.unwrap(), next.earlier)
        });
        let (newest, before) = ((Epoch(6), false), (Epoch(5), true));
        let last = (Epoch(4), true);
        assert_eq!(chosen, [newest, newest, before, before, before, last]);
        // The epochs that follow are newer, and count again.
        let after =
            again(history.next(&lost(Some(Epoch(4)), &[Epoch(5), Epoch(6), Epoch(7)], 200)));
        assert_eq!((after.from, after.earlier), (Some(Epoch(7)), false));
        // Those that are given up stay so.
        for _ in 0..2 {
            history.next(&lost(Some(Epoch(7)), &[Epoch(6), Epoch(7)], 2));
        }
        let next = history.next(&lost(Some(Epoch(7)), &[Epoch(6), Epoch(7)], 2));
        assert!(
            matches!(&next, Next::GiveUp(why) if why.contains("no other epoch")),
            "{next:?}"
        );
    }

    #[test]
    fn failures_at_once_count_only_in_a_row() {
        let mut history = History::new(99, Some(Epoch(6)));
        for seconds in [2, 2, 300, 2, 2] {
            let next = again(history.next(&lost(Some(Epoch(6)), &[Epoch(5), Epoch(6)], seconds)));
            assert_eq!(next.from, Some(Epoch(6)));
        }
    }

    #[test]
    fn launches_that_come_to_no_job_use_up_no_epoch() {
        let mut history = History::new(9, Some(Epoch(6)));
        again(history.next(&lost(Some(Epoch(6)), &[Epoch(5), Epoch(6)], 2)));
        let never = Ended {
            state: None,
            came_up: false,
            ..lost(Some(Epoch(6)), &[Epoch(5), Epoch(6)], 2)
        };
        for pause in [2, 4, 8, 16] {
            let next = again(history.next(&never));
            assert_eq!((next.from, next.pause.as_secs()), (Some(Epoch(6)), pause));
        }
        // Failures before and after them are in a row.
        again(history.next(&lost(Some(Epoch(6)), &[Epoch(5), Epoch(6)], 2)));
        let third = again(history.next(&lost(Some(Epoch(6)), &[Epoch(5), Epoch(6)], 2)));
        assert_eq!(third.from, Some(Epoch(5)));
        for _ in 0..2 {
            again(history.next(&never));
        }
        assert!(matches!(history.next(&never), Next::GiveUp(_)));
    }

    #[test]
    fn a_job_without_an_epoch_begins_again_up_to_the_limit() {
        let mut history = History::new(4, None);
        for _ in 0..4 {
            again(history.next(&lost(None, &[], 1)));
        }
        assert!(matches!(history.next(&lost(None, &[], 1)), Next::GiveUp(_)));
    }

    #[test]
    fn a_launch_that_never_had_all_ranks_has_failed_at_once() {
        let mut history = History::new(99, Some(Epoch(6)));
        let half = Ended {
            came_up: false,
            ..lost(Some(Epoch(6)), &[Epoch(5), Epoch(6)], 90)
        };
        for _ in 0..2 {
            assert_eq!(again(history.next(&half)).from, Some(Epoch(6)));
        }
        assert_eq!(again(history.next(&half)).from, Some(Epoch(5)));
    }

    #[test]
    fn the_limit_of_restarts_holds() {
        let mut history = History::new(2, Some(Epoch(1)));
        for from in (1..3).map(Epoch) {
            again(history.next(&lost(Some(from), &[from, from.next()], 100)));
        }
        let next = history.next(&lost(Some(Epoch(3)), &[Epoch(3), Epoch(4)], 100));
        assert!(
            matches!(&next, Next::GiveUp(why) if why.contains("--restarts")),
            "{next:?}"
        );
    }
}
