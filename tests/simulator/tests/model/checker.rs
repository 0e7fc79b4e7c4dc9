//! A job as a model for `stateright`.

use stateright::{Checker, Model, Property};
use stillpoint_simulator::job::{Action, Job, State};
use stillpoint_simulator::mutant::Mutant;

use crate::scenarios::Scenario;

/// A job whose every interleaving is looked at.
struct Every<S: Mutant> {
    job: Job<S>,
    search: Search,
}

/// How many of the possible actions are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// All of it.
    Full,
    /// The ones that make a difference (`stillpoint_simulator::reduction`).
    Reduced,
}

impl<S: Mutant> Model for Every<S> {
    type State = State<S>;
    type Action = Action;

    fn init_states(&self) -> Vec<State<S>> {
        vec![self.job.start()]
    }

    fn actions(&self, state: &State<S>, actions: &mut Vec<Action>) {
        match self.search {
            Search::Full => self.job.actions(state, actions),
            Search::Reduced => self.job.persistent(state, actions),
        }
    }

    fn next_state(&self, state: &State<S>, action: Action) -> Option<State<S>> {
        let mut next = state.clone();
        self.job.happen(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, state: &State<S>| state.broken.is_none()),
            Property::always(ALIVE, |model: &Every<S>, state: &State<S>| {
                let mut actions = vec![];
                model.job.actions(state, &mut actions);
                !actions.is_empty() || state.broken.is_some() || model.job.ended(state)
            }),
        ]
    }
}

const SAFE: &str = "the still point is one and nothing is lost";
const ALIVE: &str = "nobody stands still before the end";

/// The result of a search.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    pub depth: usize,
    /// The shortest way to a state that does not keep a promise, in words.
    pub way: Option<String>,
}

/// Looks at every state that the scenario can come to, until one is broken.
pub fn check<S: Mutant>(scenario: &Scenario, search: Search) -> Found {
    let program = scenario.program.clone();
    let job: Job<S> = match Job::new(program, scenario.circumstances) {
        Ok(job) => job,
        // The job is refused when the communicator is made, so nothing in it can go wrong.
        Err(_) => {
            return Found {
                states: 0,
                depth: 0,
                way: None,
            };
        }
    };
    let model = Every {
        job: job.clone(),
        search,
    };
    let builder = model
        .checker()
        .threads(2)
        .finish_when(stateright::HasDiscoveries::Any);
    let checker = builder.spawn_bfs().join();
    let way = checker
        .discoveries()
        .into_iter()
        .next()
        .map(|(name, path)| {
            let last = path.last_state().clone();
            let actions: Vec<String> = path
                .into_actions()
                .iter()
                .map(|action| format!("{action:?}"))
                .collect();
            format!(
                "{name}: {:?} after {}\n{}",
                last.broken,
                actions.join(", "),
                last.in_words(&job)
            )
        });
    Found {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        way,
    }
}
