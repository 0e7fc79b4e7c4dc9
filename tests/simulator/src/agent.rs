//! A rank's agent: carries the coordinator's orders out and says what it sees.

use std::collections::VecDeque;

use stillpoint_clock::absent::{MemberAnswer, Operation};
use stillpoint_clock::rank::{Activity, Pending, observe};
use stillpoint_clock::safe_state::Report;

use crate::ahead::Asked;
use crate::mutant::Mutant;
use crate::rank::Rank;

/// The agent and its connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    /// The step that it is in the middle of.
    pub due: Option<Due>,
    /// The attempt that it takes part in; 0: none.
    pub attempt: u32,
    /// Version of the newest order applied; 0 before the targets.
    pub seen: u64,
    pub said: Option<Activity>,
    /// Clocks that the coordinator knows of, as bits.
    pub told: u128,
    /// Anything may happen between its finding a clock's cell and its storing the target there. That makes a difference only
    /// if the rank gives communicators up.
    pub takes_its_time: bool,
    /// Has given a clock a target that was meant for another one.
    pub misled: bool,
    pub outbox: VecDeque<(u32, FromRank)>,
    pub inbox: VecDeque<ToRank>,
}

/// The second half of a step; anything may happen between the two halves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    Flag,
    Clocks,
    /// Has found the cells that these targets are for.
    Store {
        version: u64,
        targets: Vec<Found>,
    },
    /// Looked at the driver once.
    Look {
        before: Activity,
        poll: u32,
        /// Said even if it has been said before.
        ordered: bool,
    },
    /// One more round of pulling, then the counts.
    Count {
        round: u32,
    },
}

/// A cell that the agent has found, by the id of a clock, for that clock's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    index: usize,
    clock: usize,
    target: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FromRank {
    Clocks(Vec<(u64, u64)>),
    Joined(u64),
    Raise(u64, u64),
    Report(Report),
    Counts {
        round: u32,
        sent: u64,
        received: u64,
    },
    /// Its rank computes, and is behind on these clocks: does any rank know the operations?
    Ask(Vec<Asked>),
    Told(MemberAnswer),
    Released,
}

impl FromRank {
    /// Whether the moment at which the coordinator gets it makes no difference: it only adds to what is collected, or it is only looked at when nothing else
    /// can happen.
    pub fn is_patient(&self) -> bool {
        match self {
            FromRank::Clocks(_) | FromRank::Counts { .. } | FromRank::Released => true,
            FromRank::Report(report) => report.activity != Activity::Parked,
            FromRank::Joined(_) | FromRank::Raise(..) | FromRank::Ask(_) | FromRank::Told(_) => {
                false
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ToRank {
    Begin {
        attempt: u32,
    },
    Targets(u64, Vec<(u64, u64)>),
    Raised(u64, u64, u64),
    Advance(u64),
    Poll(u32),
    Count {
        round: u32,
    },
    Tell(Vec<Asked>),
    /// The answer to a rank that is late: what it is to carry out; nothing where it has to be waited for.
    CarryOut(Vec<Operation>),
    Release,
}

impl Agent {
    /// The agent as it is when no checkpoint is going on.
    pub fn anew(&self) -> Agent {
        Agent {
            takes_its_time: self.takes_its_time,
            ..Agent::default()
        }
    }
}

impl Rank {
    pub fn say(&mut self, word: FromRank) {
        let attempt = self.agent.attempt;
        self.agent.outbox.push_back((attempt, word));
    }

    /// Whether the agent has something to say of its own accord: its rank is parked, or the rank has left something with it.
    pub fn has_news(&self) -> bool {
        let parked = self.doing == Activity::Parked && self.agent.said != Some(Activity::Parked);
        self.looks_by_itself()
            && (parked || !self.raises.is_empty() || self.untold().next().is_some())
    }

    /// Clocks that the rank has and the coordinator does not know of.
    pub fn untold(&self) -> impl Iterator<Item = usize> {
        let told = self.agent.told;
        self.clocks
            .known()
            .filter(move |clock| told >> clock & 1 == 0)
    }

    /// Whether its rank now does something else than the agent has said.
    pub fn has_changed(&self) -> bool {
        self.looks_by_itself() && self.agent.said != Some(self.activity())
    }

    fn looks_by_itself(&self) -> bool {
        self.agent.due.is_none() && self.agent.seen > 0 && !self.held
    }

    /// The first half of a look.
    pub fn look(&mut self, poll: u32, ordered: bool) {
        self.agent.due = Some(Due::Look {
            before: self.activity(),
            poll,
            ordered,
        });
    }

    /// Whether the agent can go on with what it has begun, or with the next order.
    pub fn can_obey(&self) -> bool {
        self.agent.due.is_some() || !self.agent.inbox.is_empty()
    }

    /// Takes its next step. A round of counting pulls before it counts.
    pub fn obey<S: Mutant>(&mut self) {
        match self.agent.due.take() {
            Some(Due::Flag) => self.set_flag::<S>(),
            Some(Due::Clocks) => self.send_clocks::<S>(),
            Some(Due::Store { version, targets }) => self.store(version, targets),
            Some(Due::Look {
                before,
                poll,
                ordered,
            }) => self.look_again::<S>(before, poll, ordered),
            Some(Due::Count { round }) => {
                let (sent, received) = self.counts();
                self.say(FromRank::Counts {
                    round,
                    sent,
                    received,
                });
            }
            None => {
                if let Some(order) = self.agent.inbox.pop_front() {
                    self.carry_out::<S>(order);
                }
            }
        }
    }

    fn carry_out<S: Mutant>(&mut self, order: ToRank) {
        match order {
            ToRank::Begin { attempt } => {
                self.agent.attempt = attempt;
                match S::FLAG_FIRST {
                    true => self.set_flag::<S>(),
                    false => self.send_clocks::<S>(),
                }
            }
            ToRank::Targets(version, targets) => self.find(version, targets),
            ToRank::Raised(version, clock, target) => self.find(version, vec![(clock, target)]),
            ToRank::Advance(version) => {
                self.advances += 1;
                self.ordered(version);
            }
            ToRank::Tell(asked) => self.tell_what_it_knows::<S>(&asked),
            ToRank::CarryOut(operations) => self.ahead.given(operations),
            ToRank::Poll(poll) => self.look(poll, true),
            ToRank::Count { round } => {
                self.held = true;
                self.agent.due = Some(Due::Count { round });
            }
            ToRank::Release => {
                self.release::<S>();
                self.raises.clear();
                self.say(FromRank::Released);
                let (outbox, inbox) = (
                    std::mem::take(&mut self.agent.outbox),
                    std::mem::take(&mut self.agent.inbox),
                );
                self.agent = Agent {
                    outbox,
                    inbox,
                    ..self.agent.anew()
                };
            }
        }
    }

    /// Finds the cells of clocks. A clock that the rank has given up has no cell, and needs no target.
    fn find(&mut self, version: u64, targets: Vec<(u64, u64)>) {
        let cell = |(clock, target): (u64, u64)| {
            let clock = clock as usize;
            let index = self.clocks.find(clock)?;
            Some(Found {
                index,
                clock,
                target,
            })
        };
        let targets: Vec<Found> = targets.into_iter().filter_map(cell).collect();
        match self.agent.takes_its_time && !targets.is_empty() {
            true => self.agent.due = Some(Due::Store { version, targets }),
            false => self.store(version, targets),
        }
    }

    /// The first targets are this checkpoint's.
    fn store(&mut self, version: u64, targets: Vec<Found>) {
        for Found {
            index,
            clock,
            target,
        } in targets
        {
            let cell = self.clocks.at_mut(index);
            cell.target = target.max(cell.target);
            self.agent.misled |= cell.clock.is_some_and(|owner| owner != clock);
        }
        self.pending = Pending::Targeted;
        self.ordered(version);
    }

    fn ordered(&mut self, version: u64) {
        self.agent.seen = version;
        self.look(0, true);
    }

    fn set_flag<S: Mutant>(&mut self) {
        self.doing = Activity::Running;
        self.pending = Pending::Asked;
        if S::FLAG_FIRST {
            self.agent.due = Some(Due::Clocks);
        }
    }

    fn send_clocks<S: Mutant>(&mut self) {
        let mut clocks = vec![];
        self.agent.told = 0;
        let inside = self.inside.filter(|_| S::LEAVE_OUT);
        for cell in self.clocks.all_mut() {
            let is_inside = inside.is_some_and(|place| cell.clock == Some(place.clock));
            cell.target = match is_inside {
                true => cell.count.committed_before_newest(),
                false => cell.count.committed(),
            };
            if let Some(clock) = cell.clock {
                clocks.push((clock as u64, cell.target));
                self.agent.told |= 1 << clock;
            }
        }
        self.say(FromRank::Clocks(clocks));
        if !S::FLAG_FIRST {
            self.agent.due = Some(Due::Flag);
        }
    }

    fn look_again<S: Mutant>(&mut self, before: Activity, poll: u32, ordered: bool) {
        let activity = observe::<S>(before, self.reached::<S>(), self.advances, self.activity());
        if S::RAISE_FIRST && self.say_news::<S>() {
            // The activity that it saw may be out of date by now.
            return self.look(poll, ordered);
        }
        if ordered || self.agent.said != Some(activity) {
            self.agent.said = Some(activity);
            let (sent, received) = self.counts();
            let report = Report {
                activity,
                seen: self.agent.seen,
                poll,
                sent,
                received,
                begun: self.begun(),
            };
            self.say(FromRank::Report(report));
        }
        self.say_news::<S>();
    }

    /// Groups that the rank has come to know, and the raises that it has made; whether one of these was not its own target.
    fn say_news<S: Mutant>(&mut self) -> bool {
        let untold: Vec<usize> = self.untold().collect();
        for clock in untold {
            self.agent.told |= 1 << clock;
            if S::JOIN {
                self.say(FromRank::Joined(clock as u64));
            }
        }
        let mut ahead = false;
        for (clock, begun) in std::mem::take(&mut self.raises) {
            if S::OWN_RAISES
                && let Some(index) = self.clocks.find(clock)
            {
                let cell = self.clocks.at_mut(index);
                ahead |= cell.target < begun;
                cell.target = cell.target.max(begun);
            }
            self.say(FromRank::Raise(clock as u64, begun));
        }
        ahead
    }
}
