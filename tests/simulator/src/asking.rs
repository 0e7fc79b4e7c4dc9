//! The coordinator asks what members are late for, and answers ([`Question::grant`]).

use std::collections::BTreeMap;

use stillpoint_clock::absent::{Behind, MemberAnswer, Operation, Question};

use crate::agent::{FromRank, ToRank};
use crate::ahead::Asked;
use crate::coordinator::Coordinator;
use crate::job::{Action, Job, State};
use crate::mutant::Mutant;
use crate::rank::{Rank, Step};

/// The questions of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Asking {
    /// The operations that ranks have said they are late for, by clock.
    missing: BTreeMap<u64, (u64, u64)>,
    /// A rank has said so since the question went out.
    more: bool,
    /// The answers so far, while a question is out.
    told: Option<Vec<Option<MemberAnswer>>>,
}

impl Asking {
    pub fn is_out(&self) -> bool {
        self.told.is_some()
    }
}

/// Whether an action may make a difference to which ranks are late, or for which ranks operations can be carried out.
pub fn changes(action: Action) -> bool {
    matches!(
        action,
        Action::Step(_)
            | Action::Stop(_)
            | Action::Wake(_)
            | Action::Ask(_)
            | Action::Carry(_)
            | Action::Request
            | Action::Abort
            | Action::Restart
    )
}

impl<S: Mutant> Job<S> {
    /// A rank that is in what it carries out ahead of its application, although nothing else can happen.
    pub fn waits_ahead(&self, state: &State<S>) -> Option<usize> {
        let mut all = 0..state.ranks.len();
        let waits = |number: &usize| state.ranks[*number].step == Step::Carrying;
        all.find(|number| self.asks() && self.circumstances.hasty_polls == 0 && waits(number))
    }
}

impl<S: Mutant> State<S> {
    /// A rank asks. Every rank is then asked about everything that any rank lacks, unless a question is out.
    pub fn ask(&mut self, asked: Vec<Asked>) {
        let ranks = self.ranks.len();
        let Coordinator::Seeking { asking, .. } = &mut self.coordinator else {
            return;
        };
        for (ggid, begun, target) in asked {
            let range = asking.missing.entry(ggid).or_insert((begun, target));
            *range = (range.0.min(begun), range.1.max(target));
        }
        if asking.is_out() {
            asking.more = true;
            return;
        }
        asking.told = Some(vec![None; ranks]);
        asking.more = false;
        let missing = asking.missing.iter();
        let missing = missing.map(|(ggid, range)| (*ggid, range.0, range.1));
        let order = ToRank::Tell(missing.collect());
        self.broadcast(&order);
    }

    /// Whether a question is on its way.
    pub fn is_asked(&self) -> bool {
        let asks = |rank: &Rank| {
            let mut words = rank.agent.outbox.iter();
            words.any(|(_, word)| matches!(word, FromRank::Ask(_) | FromRank::Told(_)))
        };
        self.ranks.iter().any(asks)
    }

    /// A rank has answered.
    pub fn told(&mut self, number: usize, told: MemberAnswer) {
        let Coordinator::Seeking { asking, .. } = &mut self.coordinator else {
            return;
        };
        let Some(answers) = &mut asking.told else {
            return self.send(number as u32, ToRank::CarryOut(vec![]));
        };
        answers[number] = Some(told);
        let all = answers.iter().all(Option::is_some);
        let granted = match all || !S::ALL_ANSWER {
            true => decide::<S>(answers),
            false => return,
        };
        if !all && granted.is_none() {
            return;
        }
        let late = |(_, told): &(u32, &Option<MemberAnswer>)| {
            told.as_ref().is_some_and(|told| !told.behind.is_empty())
        };
        let late: Vec<u32> = (0..).zip(&*answers).filter(late).map(|it| it.0).collect();
        asking.told = None;
        if asking.more {
            self.inquired = 0;
        }
        let granted = granted.unwrap_or_default();
        for rank in late {
            let own = granted.iter().find(|it| it.0 == rank);
            let operations = own.map(|it| it.1.clone()).unwrap_or_default();
            self.send(rank, ToRank::CarryOut(operations));
        }
    }
}

type Granted = Vec<(u32, Vec<Operation>)>;

/// [`Question::grant`], asked as a mutant asks it.
fn decide<S: Mutant>(answers: &[Option<MemberAnswer>]) -> Option<Granted> {
    let mut answers: Vec<MemberAnswer> = answers
        .iter()
        .map(|it| it.clone().unwrap_or_default())
        .collect();
    if !(S::ALL_COME && S::ALL_ABLE && S::ALL_ANSWER) {
        make_up(&mut answers);
    }
    if S::ALL_ABLE {
        return grant::<S>(&answers);
    }
    let alone = |late: usize| {
        let mut answers = answers.clone();
        let mut others = answers.iter_mut().enumerate();
        others
            .by_ref()
            .filter(|it| it.0 != late)
            .for_each(|it| it.1.behind.clear());
        grant::<S>(&answers)
    };
    let granted: Granted = (0..answers.len()).filter_map(alone).flatten().collect();
    (!granted.is_empty()).then_some(granted)
}

fn grant<S: Mutant>(answers: &[MemberAnswer]) -> Option<Granted> {
    let mut question = Question::new(answers.len());
    for (rank, told) in (0..).zip(answers) {
        question.tell(rank, told.clone());
    }
    let mut granted = question.grant()?;
    if !S::ONE_ORDER {
        for (rank, operations) in &mut granted {
            // Odd ones the other way round, clock by clock.
            operations
                .sort_by_key(|it| (it.ggid as i64 * (1 - 2 * i64::from(*rank % 2)), it.number));
        }
    }
    Some(granted)
}

/// Gives every member the operations that one member remembers.
fn make_up(answers: &mut [MemberAnswer]) {
    let known: Vec<Operation> = answers
        .iter()
        .flat_map(|it| it.operations.clone())
        .collect();
    let behind: Vec<Behind> = answers.iter().flat_map(|it| it.behind.clone()).collect();
    let size = |ggid| {
        behind
            .iter()
            .find(|it| it.ggid == ggid)
            .map_or(0, |it| it.size)
    };
    let by_all = |it: &Operation| {
        let it = *it;
        (0..size(it.ggid)).map(move |teller| Operation { teller, ..it })
    };
    let made_up: Vec<Operation> = known.iter().flat_map(by_all).collect();
    answers[0].operations.extend(made_up);
}
