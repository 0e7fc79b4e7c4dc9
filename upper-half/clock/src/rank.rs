//! The rank's side of the clock: what a stub does around a collective operation, and what the agent
//! may conclude from the outside. Algorithms 2 and 3 of the paper, as decisions without state.
//!
//! How the runtime drives it, once per collective operation (blocking, nonblocking initiation,
//! persistent start, making and freeing of communicators, finalize):
//!
//! ```text
//! cell.seq := seq + 1                       plain store, no fence
//! if pending != 0 {                         one test; the rest is out of line
//!     cell.seq := seq                       taken back: the decision comes first
//!     loop { match commit_begin(pending, reached, advances, seq, target) {
//!         AwaitTargets => sleep at the bell
//!         Park         => park, pulling messages in; look again when the bell rings
//!         Go { .. }    => if uses_advance { advances -= 1 }
//!                         say Running (Collective), then cell.seq := seq + 1
//!                         if raise { target := max(target, seq + 1); tell the agent (ggid, seq + 1) }
//!                         break } }
//! }
//! the operation
//! if pending != 0 and commit_finish(..) == Park { park }
//! ```
//!
//! Why the optimistic increment is sound: the agent sets `pending`, calls `membarrier`, and only then
//! reads the cells. A stub that did not see the flag has its increment read. One that saw it takes the
//! increment back; should the agent have read the larger number, the target includes an operation
//! that this rank is about to carry out anyway, and it finds its target ahead of it.
//!
//! A nonblocking operation that can be begun again counts when it is begun, without a test, and binds the other members when the
//! application is told of its end ([`crate::count`]):
//!
//! ```text
//! count.initiate()                          at the initiation
//! ...
//! if let Some(seq) = count.bind() {         before the application is told
//!     loop { match tell(pending, seq, target) {
//!         AwaitTargets => sleep at the bell
//!         Raise        => { target := seq; tell the agent (ggid, seq); break }
//!         Return       => break } } }
//! ```

use crate::steps::Steps;

/// What the stubs test: how far a checkpoint request has come (`GatePage::pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Pending {
    /// No checkpoint is going on.
    No = 0,
    /// Asked for; the cells' targets do not mean anything yet.
    Asked = 1,
    /// The cells hold this checkpoint's targets.
    Targeted = 2,
}

impl Pending {
    /// Reads the flag; an unknown value counts as [`Pending::Asked`], which decides nothing.
    pub const fn from_word(word: u32) -> Self {
        match word {
            0 => Pending::No,
            2 => Pending::Targeted,
            _ => Pending::Asked,
        }
    }
}

/// What a stub does before a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Targets are on their way: wait for the bell, ask again.
    AwaitTargets,
    /// Every target is reached: park here, before the increment, and ask again when the bell rings.
    Park,
    /// Increment and carry the operation out.
    Go {
        /// The increment goes past the target: it *is* the new target, and every member must learn
        /// of it (section 4.2.2).
        raise: bool,
        /// One permission to pass a park point was used up.
        uses_advance: bool,
    },
}

/// What a stub does after an operation, or when it leaves any other MPI call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Return to the application.
    Return { uses_advance: bool },
    /// Every target is reached: park.
    Park,
}

/// What a stub does before it tells the application that a nonblocking operation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// Nothing.
    Return,
    /// Targets are on their way: wait for the bell, ask again.
    AwaitTargets,
    /// What this rank has begun becomes the target, and every member must learn of it.
    Raise,
}

/// Whether every target of this rank is reached; `cells` are (seq, target).
pub fn all_reached<S: Steps>(cells: impl IntoIterator<Item = (u64, u64)>) -> bool {
    !S::REACH || cells.into_iter().all(|(seq, target)| seq >= target)
}

/// COMMIT_BEGIN of Algorithm 2, also for the initiation of a nonblocking operation (section 4.3.1).
///
/// `seq` and `target` are the group's own cell before the increment, `reached` is
/// [`all_reached`] of all cells, `advances` the park points that may be passed.
pub fn commit_begin<S: Steps>(
    pending: Pending,
    reached: bool,
    advances: u32,
    seq: u64,
    target: u64,
) -> Begin {
    match pending {
        Pending::No => Begin::Go {
            raise: false,
            uses_advance: false,
        },
        Pending::Asked if S::AWAIT_TARGETS => Begin::AwaitTargets,
        Pending::Asked => Begin::Go {
            raise: false,
            uses_advance: false,
        },
        Pending::Targeted if reached && advances == 0 => Begin::Park,
        Pending::Targeted => Begin::Go {
            raise: S::RAISE && seq + 1 > target,
            uses_advance: reached,
        },
    }
}

/// COMMIT_FINISH of Algorithm 2, and the park point at the end of every other MPI call.
///
/// A rank that leaves while targets are still unknown runs on: it will meet the next park point, or
/// the stop signal.
pub fn commit_finish(pending: Pending, reached: bool, advances: u32) -> Finish {
    match pending {
        Pending::No | Pending::Asked => Finish::Return {
            uses_advance: false,
        },
        Pending::Targeted if reached && advances == 0 => Finish::Park,
        Pending::Targeted => Finish::Return {
            uses_advance: reached,
        },
    }
}

/// The application is about to be told that a nonblocking operation of a group is over; `begun` operations of
/// the group have been begun here.
///
/// Until it is told its buffers are as they were and the operation may be begun again after a restart, by
/// those who have begun it; from then on all members have to have begun it. It cannot wait for a park
/// point: the operation is over.
pub fn tell<S: Steps>(pending: Pending, begun: u64, target: u64) -> Tell {
    match pending {
        Pending::No => Tell::Return,
        Pending::Asked if S::AWAIT_TARGETS => Tell::AwaitTargets,
        Pending::Targeted if S::TELL && begun > target => Tell::Raise,
        Pending::Asked | Pending::Targeted => Tell::Return,
    }
}

/// Whether every member has to finish the operation with that number in the group's clock before an image is
/// written; what does not bind is begun again after a restart.
pub fn binds(number: u64, target: u64) -> bool {
    number <= target
}

/// Whether a rank that stands somewhere else (stopped in its computation, or blocked in a receive)
/// counts as parked: the loop condition of Algorithm 3.
pub fn may_park(pending: Pending, reached: bool, advances: u32) -> bool {
    pending == Pending::Targeted && reached && advances == 0
}

/// What one rank does, as the job's side needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// In the application, or in an MPI call that returns without another rank's next move.
    Running,
    /// In a collective operation: returns when every member has come.
    InCollective,
    /// Blocked in a receive, probe or completion call with targets ahead; pulls messages in.
    Waiting,
    /// Every target reached; pulls messages in, begins nothing.
    Parked,
}

/// What the agent may report, from what it read: `before`, then `advances` and the cells, then
/// `after` - in this order, `before` and `after` being two reads of the driver's own state.
///
/// A driver leaves its parked state *before* it takes an advance or increments a cell. So a rank that
/// was about to go on shows in `after`, in `advances` or in a target not reached; a rank that was
/// parked in both reads with everything reached in between has nothing left to do.
///
/// Having looked, and before it sends what it saw, the agent sends the raises that the rank has left with
/// it: a raise happened before the state that followed it, and must not be overtaken by its report.
pub fn observe<S: Steps>(
    before: Activity,
    reached: bool,
    advances: u32,
    after: Activity,
) -> Activity {
    if !S::LOOK_TWICE {
        return before;
    }
    let may_be = after != Activity::Parked || reached && advances == 0;
    match before == after && may_be {
        true => after,
        false => Activity::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Every;

    /// Every way that a rank can stand: whether all its targets are reached, and the advances that it has.
    fn stands() -> impl Iterator<Item = (bool, u32)> {
        [false, true]
            .into_iter()
            .flat_map(|reached| [0, 1, 2].map(|advances| (reached, advances)))
    }

    #[test]
    fn the_flag_is_read_as_it_is_written() {
        for pending in [Pending::No, Pending::Asked, Pending::Targeted] {
            assert_eq!(Pending::from_word(pending as u32), pending);
        }
        assert_eq!([3, u32::MAX].map(Pending::from_word), [Pending::Asked; 2]);
    }

    #[test]
    fn all_is_reached_where_nothing_is_ahead() {
        let reached = |cells: &[(u64, u64)]| all_reached::<Every>(cells.iter().copied());
        assert!(reached(&[]) && reached(&[(5, 5)]) && reached(&[(5, 5), (6, 5)]));
        assert!(!reached(&[(4, 5)]) && !reached(&[(5, 5), (4, 5)]) && !reached(&[(4, 5), (5, 5)]));
    }

    /// Everything that can be decided, against a table of what has to be.
    #[test]
    fn every_rank_that_stands_anywhere_does_what_it_has_to() {
        use Pending::*;
        let go = |raise, uses_advance| Begin::Go {
            raise,
            uses_advance,
        };
        let back = |uses_advance| Finish::Return { uses_advance };
        for (reached, advances) in stands() {
            // Parks there, unless it is let on.
            let parks = (reached, advances) == (true, 0);
            for (seq, goes_past) in [(3, false), (4, false), (5, true), (6, true)] {
                let begin = |pending| commit_begin::<Every>(pending, reached, advances, seq, 5);
                assert_eq!(begin(No), go(false, false));
                assert_eq!(begin(Asked), Begin::AwaitTargets);
                let begins = match parks {
                    true => Begin::Park,
                    false => go(goes_past, reached),
                };
                assert_eq!(begin(Targeted), begins, "{reached} {advances} {seq}");
            }
            let finish = |pending| commit_finish(pending, reached, advances);
            assert_eq!([No, Asked].map(finish), [back(false); 2]);
            let finishes = match parks {
                true => Finish::Park,
                false => back(reached),
            };
            assert_eq!(finish(Targeted), finishes, "{reached} {advances}");
            let stays = |pending| may_park(pending, reached, advances);
            assert_eq!([No, Asked, Targeted].map(stays), [false, false, parks]);
        }
        for (begun, binds_others) in [(4, false), (5, false), (6, true)] {
            let tells = |pending| tell::<Every>(pending, begun, 5);
            let raises = match binds_others {
                true => Tell::Raise,
                false => Tell::Return,
            };
            assert_eq!(
                [No, Asked, Targeted].map(tells),
                [Tell::Return, Tell::AwaitTargets, raises]
            );
            assert_eq!(binds(begun, 5), !binds_others);
        }
    }

    #[test]
    fn a_rank_is_what_it_was_in_both_looks_and_parked_only_with_all_reached() {
        use Activity::*;
        let all = [Running, InCollective, Waiting, Parked];
        for (before, after) in all.into_iter().flat_map(|b| all.map(|a| (b, a))) {
            for (reached, advances) in stands() {
                let seen = match (before == after, before) {
                    (true, Parked) if !(reached && advances == 0) => Running,
                    (true, same) => same,
                    (false, _) => Running,
                };
                let found = observe::<Every>(before, reached, advances, after);
                assert_eq!(found, seen, "{before:?} {reached} {advances} {after:?}");
            }
        }
    }

    #[test]
    fn nothing_is_decided_without_a_checkpoint() {
        let go = Begin::Go {
            raise: false,
            uses_advance: false,
        };
        // Targets left over from an earlier checkpoint mean nothing.
        assert_eq!(commit_begin::<Every>(Pending::No, true, 0, 9, 3), go);
        assert_eq!(
            commit_finish(Pending::No, true, 0),
            Finish::Return {
                uses_advance: false
            }
        );
    }

    #[test]
    fn a_rank_does_not_begin_before_it_knows_its_targets() {
        assert_eq!(
            commit_begin::<Every>(Pending::Asked, false, 1, 0, 0),
            Begin::AwaitTargets
        );
    }

    #[test]
    fn a_rank_parks_before_the_increment_when_all_is_reached() {
        assert_eq!(
            commit_begin::<Every>(Pending::Targeted, true, 0, 5, 5),
            Begin::Park
        );
        assert_eq!(commit_finish(Pending::Targeted, true, 0), Finish::Park);
    }

    #[test]
    fn going_past_a_target_raises_it() {
        // Rank 3 of the paper's Figure 1b: target 7 of {2,3} ahead, a new operation on {3,4,5}.
        assert_eq!(
            commit_begin::<Every>(Pending::Targeted, false, 0, 2, 2),
            Begin::Go {
                raise: true,
                uses_advance: false
            }
        );
        assert_eq!(
            commit_begin::<Every>(Pending::Targeted, false, 0, 6, 7),
            Begin::Go {
                raise: false,
                uses_advance: false
            }
        );
    }

    #[test]
    fn an_advance_passes_one_park_point_and_raises() {
        assert_eq!(
            commit_begin::<Every>(Pending::Targeted, true, 1, 5, 5),
            Begin::Go {
                raise: true,
                uses_advance: true
            }
        );
        // Targets ahead: nothing is passed, so nothing is used up.
        assert_eq!(
            commit_finish(Pending::Targeted, false, 1),
            Finish::Return {
                uses_advance: false
            }
        );
    }

    #[test]
    fn only_a_rank_seen_parked_throughout_is_parked() {
        use Activity::*;
        assert_eq!(observe::<Every>(Parked, true, 0, Parked), Parked);
        assert_eq!(observe::<Every>(Parked, false, 0, Parked), Running);
        assert_eq!(observe::<Every>(Parked, true, 1, Parked), Running);
        assert_eq!(observe::<Every>(Parked, true, 0, Running), Running);
        assert_eq!(observe::<Every>(Running, true, 0, Parked), Running);
        assert_eq!(observe::<Every>(Waiting, false, 0, Waiting), Waiting);
        assert_eq!(observe::<Every>(Waiting, false, 0, InCollective), Running);
        assert_eq!(
            observe::<Every>(InCollective, false, 0, InCollective),
            InCollective
        );
    }

    #[test]
    fn what_the_application_is_told_binds_the_others() {
        assert_eq!(tell::<Every>(Pending::No, 9, 3), Tell::Return);
        assert_eq!(tell::<Every>(Pending::Asked, 9, 0), Tell::AwaitTargets);
        assert_eq!(tell::<Every>(Pending::Targeted, 9, 8), Tell::Raise);
        assert_eq!(tell::<Every>(Pending::Targeted, 9, 9), Tell::Return);
        assert!(binds(9, 9) && !binds(10, 9));
    }
}
