//! Which of the actions that are possible in a state have to be looked at: a *persistent set* (Godefroid, "Partial-Order
//! Methods for the Verification of Concurrent Systems", chapter 4).
//!
//! An actor here is a rank with its agent; the coordinator is one too. A set of ranks is enough if the others, before the set
//! has moved, can do nothing that concerns the set: neither side makes an action of the other possible or impossible,
//! or changes its result. Every order of the actions then leads to a state that some order with one of the
//! set's actions first leads to as well. Broken promises and jobs that stand still are states without actions, and no such state
//! is lost by looking at the set alone.
//!
//! The sets are found by closure ([`Set::close`]): every actor that concerns a member becomes one. The model's test compares
//! the findings with and without the reduction.

use stillpoint_clock::rank::Activity;

use crate::agent::{FromRank, ToRank};
use crate::ahead;
use crate::barrier::{self, Barrier, Stage};
use crate::coordinator::Coordinator;
use crate::job::{Action, Job, State};
use crate::mutant::Mutant;
use crate::program::Op;
use crate::rank::Step;
use crate::step;

/// The rank that an action belongs to, or `None` for the coordinator's.
fn actor(action: Action) -> Option<usize> {
    match action {
        Action::Step(rank)
        | Action::Stop(rank)
        | Action::Wake(rank)
        | Action::Test(rank)
        | Action::Ask(rank)
        | Action::Carry(rank)
        | Action::Inquire(rank)
        | Action::Pull(rank) => Some(rank),
        Action::Obey(rank) | Action::CountHastily(rank) | Action::Look(rank) => Some(rank),
        Action::Deliver(_)
        | Action::Pause
        | Action::Request
        | Action::Abort
        | Action::CarryOn
        | Action::Restart => None,
    }
}

impl<S: Mutant> Job<S> {
    /// Keeps those of all possible actions in a state that have to be looked at.
    pub fn persistent(&self, state: &State<S>, actions: &mut Vec<Action>) {
        self.actions(state, actions);
        // A request goes to every agent, each of which takes its time.
        if actions.contains(&Action::Request) {
            actions.retain(|action| *action == Action::Request);
            return;
        }
        // While the image is there no rank moves.
        if state.coordinator == Coordinator::Written {
            return;
        }
        let count = |set: u32| {
            let inside =
                |action: &&Action| actor(**action).is_some_and(|rank| set >> rank & 1 == 1);
            actions.iter().filter(inside).count()
        };
        let sets = (0..state.ranks.len()).filter_map(|seed| self.close(state, seed));
        let best = sets
            .map(|set| (count(set), set))
            .filter(|(count, _)| *count > 0)
            .min();
        if let Some((_, set)) = best {
            actions.retain(|action| actor(*action).is_some_and(|rank| set >> rank & 1 == 1));
        }
    }

    /// The smallest set with that rank that is enough, if there is one without the coordinator.
    fn close(&self, state: &State<S>, seed: usize) -> Option<u32> {
        let mut set = Set {
            job: self,
            state,
            members: 1 << seed,
        };
        loop {
            let before = set.members;
            for number in 0..state.ranks.len() {
                if before >> number & 1 == 1 {
                    set.add_whom_the_driver_meets(number);
                    if state.ranks[number].agent.due.is_none()
                        && state.ranks[number].agent.inbox.is_empty()
                        && !set.add_who_brings_orders(number)
                    {
                        return None;
                    }
                }
            }
            if set.members == before {
                return set.coordinator_waits().then_some(set.members);
            }
        }
    }
}

/// Ranks, as bits.
struct Set<'a, S: Mutant> {
    job: &'a Job<S>,
    state: &'a State<S>,
    members: u32,
}

impl<S: Mutant> Set<'_, S> {
    fn has(&self, number: usize) -> bool {
        self.members >> number & 1 == 1
    }

    fn add(&mut self, number: usize) {
        self.members |= 1 << number;
    }

    /// The operations that a rank has yet to do.
    fn future(&self, number: usize) -> &[Op] {
        &self.job.program.ranks[number][self.state.ranks[number].at..]
    }

    fn add_all(&mut self, which: impl Fn(&Self, usize) -> bool) {
        for number in 0..self.state.ranks.len() {
            if which(self, number) {
                self.add(number);
            }
        }
    }

    /// Adds every rank that the next step of a rank's driver thread waits for, or makes a difference to.
    fn add_whom_the_driver_meets(&mut self, number: usize) {
        let (state, job) = (self.state, self.job);
        let it = &state.ranks[number];
        if S::PULL && matches!(it.doing, Activity::Parked | Activity::Waiting) {
            self.add_all(|set, from| set.future(from).iter().any(|op| sends_to(*op, number)));
        }
        if let Some(on) = ahead::carries_on(job, it) {
            match it.step {
                Step::Carrying => self.add_lacking(number, on, it.begun[on]),
                _ => self.add_who_waits(on),
            }
        }
        let Some(op) = step::next_op(job, &state.ranks, number) else {
            return;
        };
        if let Step::Barrier(Barrier { on, stage }) = it.step
            && stage == Stage::Entered
        {
            for other in barrier::lacking(job, &state.ranks, number, on) {
                self.add(other);
            }
        }
        match (it.step, op) {
            (Step::Before, Op::Send { to } | Op::Deliver { to }) => self.add(to),
            // The sender may wait for the receive.
            (Step::Before, Op::Receive { from, .. })
                if it.taken[from] == state.ranks[from].sent[number]
                    || state.ranks[from].step == Step::Sending =>
            {
                self.add(from);
            }
            (Step::Before, Op::Wait { on, number: which } | Op::Look { on, number: which }) => {
                self.add_lacking(number, on, which);
            }
            (Step::Before, Op::Start { on, binds: false })
            | (
                Step::Incremented
                | Step::Deciding
                | Step::Passing
                | Step::Barrier(_)
                | Step::Counted
                | Step::Unsaid
                | Step::Again,
                Op::Collective { on, .. } | Op::Make { on, .. } | Op::Start { on, .. },
            ) => self.add_who_waits(on),
            (
                Step::Inside | Step::Open,
                Op::Collective { on, .. } | Op::Make { on, .. } | Op::Free { set: on, .. },
            ) => {
                self.add_lacking(number, on, it.begun[on]);
            }
            (Step::Sending, Op::Deliver { to })
                if !step::is_delivered::<S>(&state.ranks, number, to) =>
            {
                self.add(to);
            }
            _ => {}
        }
    }

    /// Adds every rank that may look whether a nonblocking operation is over.
    fn add_who_waits(&mut self, on: usize) {
        self.add_all(|set, other| set.future(other).iter().any(|op| waits_on(*op, on)));
    }

    fn add_lacking(&mut self, number: usize, on: usize, which: u32) {
        for other in step::lacking(self.job, &self.state.ranks, number, on, which) {
            self.members |= 1 << other;
        }
    }

    /// Adds the ranks that can cause an agent without orders to get one; false if the coordinator can by itself.
    fn add_who_brings_orders(&mut self, number: usize) -> bool {
        let state = self.state;
        match &state.coordinator {
            Coordinator::Idle | Coordinator::Written => state.wanted == 0,
            Coordinator::Releasing(_) => {
                let later = |rank: usize| state.ranks[rank].agent.inbox.contains(&ToRank::Release);
                state.wanted == 0 || self.add_one(later)
            }
            _ if state.aborts > 0 => false,
            // A question may be asked, or answered.
            Coordinator::Seeking { asking, .. }
                if state.hasty_asks > 0 || asking.is_out() || state.is_asked() =>
            {
                false
            }
            Coordinator::Draining(drain) => self.add_one(|rank| drain.lacks(rank)),
            Coordinator::Seeking { safe, .. } if safe.version() == 0 => self.add_one(|rank| {
                safe.clocks_missing()
                    .any(|missing| missing as usize == rank)
            }),
            Coordinator::Seeking { .. } => {
                // A hasty poll goes out as soon as every rank has reported.
                if state.hasty_polls > 0 || self.a_raise_is_on_its_way() {
                    return false;
                }
                self.add_all(|set, other| set.may_raise_for(other, number));
                true
            }
        }
    }

    /// Adds one of those unless it has one; false if there are none.
    fn add_one(&mut self, which: impl Fn(usize) -> bool) -> bool {
        let mut those = (0..self.state.ranks.len()).filter(|rank| which(*rank));
        let Some(first) = those.next() else {
            return false;
        };
        if !self.has(first) && !those.any(|rank| self.has(rank)) {
            self.add(first);
        }
        true
    }

    fn a_raise_is_on_its_way(&self) -> bool {
        let raise =
            |(_, word): &(u32, FromRank)| matches!(word, FromRank::Raise(..) | FromRank::Joined(_));
        self.state
            .ranks
            .iter()
            .any(|rank| rank.agent.outbox.iter().any(raise))
    }

    /// Whether a rank may raise a target, or come to know a group, so that the other rank hears of it.
    fn may_raise_for(&self, number: usize, other: usize) -> bool {
        let it = &self.state.ranks[number];
        let clocks = &self.job.clocks;
        let members = |on: usize| &self.job.program.communicators[on].members;
        let shared = |clock: usize| {
            (0..clocks.len()).any(|on| clocks[on] == clock && members(on).contains(&other))
        };
        let met = |op: &Op| match *op {
            Op::Make { on, new } => {
                let set = self.job.program.communicators[new].set;
                shared(clocks[on])
                    || shared(clocks[new])
                    || set.is_some_and(|set| shared(clocks[set]))
            }
            Op::Free { on, set } => shared(clocks[on]) || shared(clocks[set]),
            Op::Collective { on, .. }
            | Op::Start { on, .. }
            | Op::Wait { on, .. }
            | Op::Look { on, .. } => shared(clocks[on]),
            _ => false,
        };
        self.future(number).iter().any(met)
            || it.raises.iter().any(|(clock, _)| shared(*clock))
            || it.untold().any(shared)
    }

    /// Whether the coordinator comes to no conclusion before one of the set has moved.
    fn coordinator_waits(&self) -> bool {
        let state = self.state;
        let mut members = (0..state.ranks.len()).filter(|rank| self.has(*rank));
        match &state.coordinator {
            Coordinator::Idle | Coordinator::Written | Coordinator::Releasing(_) => true,
            Coordinator::Draining(drain) => members.any(|rank| drain.lacks(rank)),
            Coordinator::Seeking { safe, .. } if safe.version() == 0 => members.any(|rank| {
                safe.clocks_missing()
                    .any(|missing| missing as usize == rank)
            }),
            Coordinator::Seeking { safe, .. } => {
                let counts = |activity: Option<Activity>| match S::ALL_PARKED {
                    true => activity == Some(Activity::Parked),
                    false => activity.is_some_and(|activity| activity != Activity::Running),
                };
                let missing = |rank: usize| {
                    let reported =
                        |(_, word): &(u32, FromRank)| matches!(word, FromRank::Report(_));
                    let on_its_way = state.ranks[rank].agent.outbox.iter().any(reported);
                    let mut late = safe.not_parked();
                    !on_its_way
                        && late.any(|(late, activity)| late as usize == rank && !counts(activity))
                };
                members.any(missing)
            }
        }
    }
}

fn sends_to(op: Op, receiver: usize) -> bool {
    matches!(op, Op::Send { to } | Op::Deliver { to } if to == receiver)
}

fn waits_on(op: Op, communicator: usize) -> bool {
    matches!(op, Op::Wait { on, .. } | Op::Look { on, .. } if on == communicator)
}
