//! Two-phase commit (section 2.2 of the paper), the older way to a still point, as a yardstick.
//!
//! A trivial barrier stands before every blocking collective operation. A rank that has entered it has begun nothing
//! yet and may be stopped there: after a restart it enters the barrier again. Once a rank is past the barrier, every
//! member has entered it, and all go on to the end of the operation.
//!
//! "Past the barrier" is COMMIT_BEGIN of the clock, so the coordinator need not know which way was chosen: the first
//! member that gets past raises the target, and the others, wherever they are stopped in that barrier, find it ahead.
//!
//! ```text
//! begin the barrier
//! loop { match step(pending, past, reached, advances) {
//!     AskAgain     => test the barrier
//!     AwaitTargets => sleep at the bell
//!     Park         => park; after a restart begin the barrier again
//!     Announce     => target := max(target, seq + 1), tell the agent; test the barrier
//!     Commit       => seq := seq + 1
//!                     if a checkpoint is pending { target := max(target, seq), tell the agent; break }
//!                     if the flag is not set by now { break }
//!                     seq := seq - 1 } }
//! the operation
//! ```

use crate::rank::Pending;
use crate::steps::Steps;

/// The next step of a rank in a trivial barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The barrier is not over: test it, ask again.
    AskAgain,
    /// Targets are on their way: wait for the bell, ask again.
    AwaitTargets,
    /// Every target is reached: park here, having begun nothing.
    Park,
    /// Other targets are ahead, and the way to them is through this operation: every member has to come.
    Announce {
        /// One permission to pass a park point was used up.
        uses_advance: bool,
    },
    /// Every member has entered: increment, and carry the operation out.
    ///
    /// If a checkpoint is pending, the increment becomes the target. If not, the flag is tested once more, and the
    /// increment is taken back if the flag is set by now.
    Commit,
}

/// `past`: the barrier is over here; `reached` and `advances` as for [`crate::rank::commit_begin`].
///
/// There is no park point between the end of the barrier and the increment. A rank whose barrier is over must be in no
/// image, for the others might have gone on to the operation.
pub fn step<S: Steps>(pending: Pending, past: bool, reached: bool, advances: u32) -> Step {
    match (pending, past) {
        (Pending::Asked, true) if S::AWAIT_TARGETS => Step::AwaitTargets,
        (Pending::Targeted, true) if !S::GO_ON_PAST && reached && advances == 0 => Step::Park,
        (_, true) => Step::Commit,
        (Pending::No | Pending::Asked, false) => Step::AskAgain,
        (Pending::Targeted, false) if reached && advances == 0 => Step::Park,
        (Pending::Targeted, false) if S::ANNOUNCE => Step::Announce {
            uses_advance: reached,
        },
        (Pending::Targeted, false) => Step::AskAgain,
    }
}

/// Whether a job has a safe state in which that many nonblocking and persistent operations have been begun: no barrier stands
/// before these in which a rank could be stopped.
pub fn has_safe_state<S: Steps>(begun: u32) -> bool {
    begun == 0 || !S::REFUSE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Every;

    /// Every decision, against a table of the right ones.
    #[test]
    fn every_rank_at_a_barrier_does_what_it_has_to() {
        use Pending::*;
        for reached in [false, true] {
            for advances in [0, 1, 2] {
                let next = |pending, past| step::<Every>(pending, past, reached, advances);
                let waits = match (reached, advances) {
                    (true, 0) => Step::Park,
                    _ => Step::Announce {
                        uses_advance: reached,
                    },
                };
                assert_eq!(next(No, false), Step::AskAgain);
                assert_eq!(next(Asked, false), Step::AskAgain);
                assert_eq!(next(Targeted, false), waits, "{reached} {advances}");
                assert_eq!(next(No, true), Step::Commit);
                assert_eq!(next(Asked, true), Step::AwaitTargets);
                assert_eq!(next(Targeted, true), Step::Commit);
            }
        }
        let safe = [0, 1, 2].map(has_safe_state::<Every>);
        assert_eq!(safe, [true, false, false]);
    }

    #[test]
    fn without_a_checkpoint_a_barrier_is_a_barrier() {
        assert_eq!(step::<Every>(Pending::No, false, true, 0), Step::AskAgain);
        assert_eq!(step::<Every>(Pending::No, true, false, 0), Step::Commit);
    }

    #[test]
    fn who_has_entered_is_stopped_and_who_is_past_goes_on() {
        assert_eq!(step::<Every>(Pending::Targeted, false, true, 0), Step::Park);
        let next = step::<Every>(Pending::Targeted, true, true, 0);
        assert_eq!(next, Step::Commit);
    }

    #[test]
    fn nothing_is_committed_between_the_request_and_its_targets() {
        assert_eq!(
            step::<Every>(Pending::Asked, true, true, 1),
            Step::AwaitTargets
        );
        assert_eq!(
            step::<Every>(Pending::Asked, false, true, 1),
            Step::AskAgain
        );
    }

    #[test]
    fn who_has_to_get_on_calls_the_others() {
        let called = |uses_advance| Step::Announce { uses_advance };
        let next = |reached| step::<Every>(Pending::Targeted, false, reached, 1);
        assert_eq!(next(false), called(false));
        assert_eq!(next(true), called(true));
    }

    #[test]
    fn what_is_nonblocking_has_no_safe_state() {
        assert!(has_safe_state::<Every>(0) && !has_safe_state::<Every>(1));
    }
}
