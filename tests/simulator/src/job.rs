//! A job, and everything that may happen next.

use std::sync::Arc;

use stillpoint_clock::group::Collision;
use stillpoint_clock::rank::{Activity, Pending};

use crate::agent::Due;
use crate::barrier;
use crate::clocks::Clocks;
use crate::coordinator::{Coordinator, Poll};
use crate::mutant::Mutant;
use crate::program::{Op, Program, Until};
use crate::promise::Broken;
use crate::rank::Rank;
use crate::ranks::Ranks;
use crate::{ahead, asking, inside, step, wire};

/// The part of a job that does not change.
#[derive(Clone, Debug)]
pub struct Job<S: Mutant> {
    pub program: Program,
    /// The clock of each communicator.
    pub clocks: Vec<usize>,
    pub circumstances: Circumstances,
    steps: std::marker::PhantomData<S>,
}

/// Events that the job meets from outside.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Checkpoints asked for, each at any moment after the one before.
    pub checkpoints: u32,
    /// How many of them may be given up half-way.
    pub aborts: u32,
    /// How often a poll goes out although something else could still happen.
    pub hasty_polls: u32,
    /// How often a rank counts in the drain although it has not pulled in what is on the wire.
    pub hasty_counts: u32,
    /// Two-phase commit in the place of the clock, for blocking collective operations.
    pub two_phase: bool,
    /// How many checkpoints may be followed by a restart.
    pub restarts: u32,
    /// The long pause before a poll, while a rank runs, is long enough for that rank to get on.
    pub patient: bool,
    /// When the last checkpoint is over, the job comes to its end in one action.
    pub ends_early: bool,
    /// Late members have operations carried out ahead of them: how often one asks although something else could still happen.
    pub asks: Option<u32>,
}

/// The part of a job that changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<S: Mutant> {
    pub ranks: Ranks,
    pub coordinator: Coordinator<S>,
    pub attempt: u32,
    pub wanted: u32,
    pub done: u32,
    pub aborts: u32,
    pub restarts: u32,
    pub hasty_polls: u32,
    pub hasty_counts: u32,
    pub two_phase: bool,
    /// Polls may go out although something else can still happen.
    pub hasty: bool,
    pub asks: bool,
    pub hasty_asks: u32,
    /// Ranks that have asked, without anything having happened since, as bits.
    pub inquired: u32,
    /// The members of each communicator.
    pub members: Arc<Vec<Vec<usize>>>,
    pub broken: Option<Broken>,
}

/// Something that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A rank's driver thread takes its next step.
    Step(usize),
    /// The stop signal finds a rank in its application.
    Stop(usize),
    /// A parked rank notices that it has to go on.
    Wake(usize),
    /// A rank tests the trivial barrier that it is in.
    Test(usize),
    /// A rank that is blocked in a collective operation asks whether it is to stand still there.
    Ask(usize),
    /// A rank goes on with what it carries out ahead of its application.
    Carry(usize),
    /// The agent of a rank that computes asks what it is late for.
    Inquire(usize),
    /// Messages come in.
    Pull(usize),
    /// An agent takes its next step.
    Obey(usize),
    /// ... but counts without having pulled.
    CountHastily(usize),
    /// An agent looks at its rank.
    Look(usize),
    /// The coordinator gets an agent's next word.
    Deliver(usize),
    /// The pause before a poll is over.
    Pause,
    Request,
    Abort,
    /// The image is written: the job goes on.
    CarryOn,
    /// ... or begins again from it.
    Restart,
}

impl<S: Mutant> Job<S> {
    /// Refused if two groups of the program have one id.
    pub fn new(mut program: Program, circumstances: Circumstances) -> Result<Job<S>, Collision> {
        if !S::OUTLIVE {
            program.free_on_own_clocks();
        }
        let clocks = program.clocks::<S>()?;
        Ok(Job {
            program,
            clocks,
            circumstances,
            steps: std::marker::PhantomData,
        })
    }

    /// Whether late members ask what they are late for.
    pub fn asks(&self) -> bool {
        self.circumstances.asks.is_some()
    }

    /// Before anything has happened.
    pub fn start(&self) -> State<S> {
        let communicators = &self.program.communicators;
        let ranks = self.program.ranks.len();
        let rank = |number: usize| {
            let mut clocks = Clocks::default();
            for (communicator, clock) in communicators.iter().zip(&self.clocks) {
                let is_known = communicator.given && communicator.unknown_to != Some(number);
                if is_known && communicator.members.contains(&number) {
                    clocks.learn::<S>(*clock, true);
                }
            }
            let mut rank = Rank::new(ranks, communicators.len(), clocks);
            if self.asks() {
                rank.ahead = self.places(number);
            }
            let frees = |op: &Op| matches!(op, Op::Free { .. });
            rank.agent.takes_its_time = self.program.ranks[number].iter().any(frees);
            rank
        };
        State {
            ranks: (0..ranks).map(rank).collect(),
            coordinator: Coordinator::Idle,
            attempt: 0,
            wanted: self.circumstances.checkpoints,
            done: 0,
            aborts: self.circumstances.aborts,
            restarts: self.circumstances.restarts,
            hasty_polls: self.circumstances.hasty_polls,
            hasty_counts: self.circumstances.hasty_counts,
            two_phase: self.circumstances.two_phase,
            hasty: self.circumstances.hasty_polls > 0,
            asks: self.asks(),
            hasty_asks: self.circumstances.asks.unwrap_or(0),
            inquired: 0,
            members: Arc::new(communicators.iter().map(|c| c.members.clone()).collect()),
            broken: None,
        }
    }

    /// Whether everything has come to its end.
    pub fn ended(&self, state: &State<S>) -> bool {
        let at_end = |(rank, ops): (&Rank, &Vec<_>)| {
            rank.at == ops.len() && rank.pending == Pending::No && rank.agent.inbox.is_empty()
        };
        state.coordinator == Coordinator::Idle
            && state.wanted == 0
            && state.is_drained().is_ok()
            && state.ranks.iter().zip(&self.program.ranks).all(at_end)
    }

    /// Lists the actions that may happen next; none once a promise is broken.
    pub fn actions(&self, state: &State<S>, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        for number in 0..state.ranks.len() {
            self.actions_of(state, number, actions);
        }
        // The activity of a rank that does not get on matters only when no rank gets on.
        if actions.is_empty() || state.hasty_polls > 0 {
            let changed = (0..state.ranks.len()).filter(|rank| state.ranks[*rank].has_changed());
            actions.extend(changed.map(Action::Look));
        }
        if self.asks() && (actions.is_empty() || state.hasty_asks > 0) {
            let late = |rank: &usize| {
                let anew = state.hasty_asks > 0 || state.inquired >> rank & 1 == 0;
                anew && state.ranks[*rank].can_inquire::<S>()
            };
            actions.extend((0..state.ranks.len()).filter(late).map(Action::Inquire));
        }
        let seeks = matches!(state.coordinator, Coordinator::Seeking { .. });
        let draining = matches!(state.coordinator, Coordinator::Draining(_));
        if let Coordinator::Seeking {
            poll: Some(poll), ..
        } = state.coordinator
            && (actions.is_empty() || self.may_be_hasty(state, poll))
        {
            actions.push(Action::Pause);
        }
        if state.coordinator == Coordinator::Idle && state.wanted > 0 {
            actions.push(Action::Request);
        }
        if state.aborts > 0 && (seeks || draining) {
            actions.push(Action::Abort);
        }
        if state.coordinator == Coordinator::Written {
            actions.extend([Action::CarryOn, Action::Restart]);
        }
    }

    /// Whether a poll may go out although something else can still happen.
    pub fn may_be_hasty(&self, state: &State<S>, poll: Poll) -> bool {
        state.hasty_polls > 0 && !(poll.patient && self.circumstances.patient)
    }

    fn actions_of(&self, state: &State<S>, number: usize, actions: &mut Vec<Action>) {
        let it = &state.ranks[number];
        if step::can_step(self, &state.ranks, number) {
            actions.push(Action::Step(number));
        }
        if ahead::can_carry(self, &state.ranks, number) {
            actions.push(Action::Carry(number));
        }
        if barrier::can_test(self, &state.ranks, number) {
            actions.push(Action::Test(number));
        }
        if inside::can_ask::<S>(&state.ranks, number) {
            actions.push(Action::Ask(number));
        }
        let next = self.program.ranks[number].get(it.at);
        let lingers = |until| matches!(until, Until::Targeted | Until::Carried);
        let busy = next.is_some_and(|op| !matches!(op, Op::Linger { until } if lingers(*until)));
        if it.can_stop::<S>(busy) {
            actions.push(Action::Stop(number));
        }
        if it.can_wake::<S>() {
            actions.push(Action::Wake(number));
        }
        if wire::can_pull::<S>(&state.ranks, number) {
            actions.push(Action::Pull(number));
        }
        if it.can_obey() {
            actions.push(Action::Obey(number));
        }
        if let Some(Due::Count { .. }) = it.agent.due
            && state.hasty_counts > 0
        {
            actions.push(Action::CountHastily(number));
        }
        if it.has_news() {
            actions.push(Action::Look(number));
        }
        if !it.agent.outbox.is_empty() {
            actions.push(Action::Deliver(number));
        }
    }

    /// Delivers words at once if the moment of their delivery makes no difference.
    fn pass_patient_words_on(&self, state: &mut State<S>, number: usize) -> Result<(), Broken> {
        while let Some((_, word)) = state.ranks[number].agent.outbox.front()
            && word.is_patient()
        {
            state.deliver(number)?;
        }
        Ok(())
    }

    /// Lets something happen.
    pub fn happen(&self, state: &mut State<S>, action: Action) {
        let done = state.done;
        self.carry_out(state, action);
        if state.done > done && self.circumstances.two_phase {
            state.broken = state.broken.or(self.unfinished(state));
        }
        if self.circumstances.ends_early && state.wanted == 0 {
            self.run_out(state);
        }
        let early = state.ranks.iter().position(|rank| rank.told_early);
        state.broken = state.broken.or(early.map(Broken::OverWithoutReceive));
        if self.asks() {
            let mut all = 0..state.ranks.len();
            let astray = all.find(|number| state.ranks[*number].ahead.astray);
            state.broken = state.broken.or(astray.map(Broken::AnotherOperation));
            let mut all = 0..state.ranks.len();
            let alone = all.find(|number| state.ranks[*number].ahead.alone);
            state.broken = state.broken.or(alone.map(Broken::WaitsAhead));
        }
    }

    /// A nonblocking operation that is under way while the image of a job under two-phase commit is written.
    fn unfinished(&self, state: &State<S>) -> Option<Broken> {
        let under_way = |number: &usize| {
            let rank = &state.ranks[*number];
            let mut later = self.program.ranks[*number][rank.at..].iter();
            later.any(|op| matches!(*op, Op::Wait { on, number } if rank.begun[on] >= number))
        };
        (0..state.ranks.len())
            .find(under_way)
            .map(Broken::Unfinished)
    }

    fn carry_out(&self, state: &mut State<S>, action: Action) {
        if self.asks() && asking::changes(action) {
            state.inquired = 0;
        }
        let ranks = &mut state.ranks;
        match action {
            Action::Step(number) => step::step(self, ranks, number),
            Action::Carry(number) => {
                ahead::carry(self, ranks, number);
            }
            Action::Inquire(number) => {
                state.hasty_asks = state.hasty_asks.saturating_sub(1);
                state.inquired |= 1 << number;
                ranks[number].inquire();
            }
            Action::Stop(number) => ranks[number].doing = Activity::Parked,
            Action::Wake(number) => ranks[number].wake::<S>(),
            Action::Test(number) => barrier::test(self, ranks, number),
            Action::Ask(number) => {
                inside::ask(self, ranks, number);
                if ranks[number].stands_inside() && ranks[number].can_wake::<S>() {
                    state.broken = Some(Broken::StandsInVain(number));
                }
            }
            Action::Pull(number) => wire::pull(ranks, number),
            Action::Obey(number) => {
                if S::PULL && matches!(ranks[number].agent.due, Some(Due::Count { .. })) {
                    wire::pull(ranks, number);
                }
                ranks[number].obey::<S>();
                let misled = ranks[number].agent.misled;
                state.broken = self.pass_patient_words_on(state, number).err();
                if misled {
                    state.broken = Some(Broken::Misled(number));
                }
            }
            Action::CountHastily(number) => {
                state.hasty_counts -= 1;
                ranks[number].obey::<S>();
                state.broken = self.pass_patient_words_on(state, number).err();
            }
            Action::Look(number) => ranks[number].look(0, false),
            Action::Deliver(number) => {
                let delivered = state.deliver(number);
                state.broken = delivered
                    .and_then(|()| self.pass_patient_words_on(state, number))
                    .err();
            }
            Action::Pause => {
                if let Some(number) = self.waits_ahead(state) {
                    state.broken = Some(Broken::WaitsAhead(number));
                    return;
                }
                // Hasty only if something else could have happened.
                state.hasty_polls = state.hasty_polls.saturating_sub(1);
                state.pause_over();
            }
            Action::Request => state.request(),
            Action::Abort => {
                state.aborts -= 1;
                state.release();
            }
            Action::CarryOn => state.release(),
            Action::Restart => state.restart(self),
        }
    }
}

impl<S: Mutant> State<S> {
    /// Describes how far the ranks have come, for a person who has to understand a failure.
    pub fn in_words(&self, job: &Job<S>) -> String {
        let mut lines = vec![format!("{:?}, broken: {:?}", self.coordinator, self.broken)];
        for (number, rank) in self.ranks.iter().enumerate() {
            let op = job.program.ranks[number].get(rank.at);
            lines.push(format!(
                "rank {number}: {:?} operation {} {op:?} {:?} {:?} {:?} advances {} begun {:?} bound {:?} {:?} \
                 sent {:?} pulled {:?} taken {:?} {:?}",
                rank.ahead, rank.at, rank.step, rank.doing, rank.pending, rank.advances, rank.begun, rank.bound, rank.clocks,
                rank.sent, rank.pulled, rank.taken, rank.agent
            ));
        }
        lines.join("\n")
    }
}
