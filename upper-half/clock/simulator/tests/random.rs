//! Random programs, random interleavings, checkpoints at random moments: the still point is found and is one,
//! nothing is lost, and every program comes to its end.
//!
//! A seed that fails is printed; `STILLPOINT_TEST_SEED=<seed>` runs it alone.

use stillpoint_clock::steps::Every;
use stillpoint_simulator::job::{Action, Circumstances, Job, State};
use stillpoint_simulator::random::{self, Numbers};

const SEEDS: u64 = 2000;
/// Far more than any of these jobs needs.
const MAX_STEPS: usize = 1_000_000;

/// The actor of an action, which may be asleep: kind and rank in one number.
fn actor(action: Action) -> Option<usize> {
    match action {
        Action::Step(rank) | Action::Stop(rank) | Action::Wake(rank) | Action::Pull(rank) => {
            Some(rank)
        }
        Action::Obey(rank) | Action::CountHastily(rank) | Action::Look(rank) => Some(16 + rank),
        Action::Deliver(rank) => Some(32 + rank),
        Action::Pause => Some(48),
        Action::Request | Action::Abort => None,
    }
}

fn run(seed: u64) -> Result<u32, String> {
    let mut numbers = Numbers(seed);
    let ranks = 1 + numbers.below(8);
    let happenings = numbers.below(40);
    let program = random::program(&mut numbers, ranks, happenings);
    let circumstances = Circumstances {
        checkpoints: 3,
        aborts: u32::from(numbers.below(4) == 0),
        hasty_polls: 20,
        hasty_counts: 5,
        ends_early: false,
    };
    let job: Job<Every> = Job::new(program, circumstances).map_err(|error| error.to_string())?;
    let mut state = job.start();
    let mut actions = vec![];
    // Some actors sleep for a while, so that the others get far ahead of them.
    let mut asleep = 0;
    for steps in 0..MAX_STEPS {
        if steps % 64 == 0 {
            asleep = numbers.draw() & numbers.draw();
        }
        actions.clear();
        job.actions(&state, &mut actions);
        if actions.is_empty() {
            return end(&job, &state);
        }
        let action = actions[numbers.below(actions.len())];
        let rare = matches!(action, Action::Request | Action::Abort) && actions.len() > 1;
        let sleeps = actor(action).is_some_and(|actor| asleep >> actor & 1 == 1);
        if rare && numbers.below(16) > 0 || sleeps && actions.len() > 1 {
            continue;
        }
        job.happen(&mut state, action);
    }
    Err(format!(
        "no end after {MAX_STEPS} steps\n{}",
        state.in_words(&job)
    ))
}

fn end(job: &Job<Every>, state: &State<Every>) -> Result<u32, String> {
    match job.ended(state) {
        true => Ok(state.done),
        false => Err(format!("{:?}\n{}", state.broken, state.in_words(job))),
    }
}

#[test]
fn the_still_point_is_found_and_is_one() {
    let given = std::env::var("STILLPOINT_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seeds = given.map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut done = 0;
    for seed in seeds {
        match run(seed) {
            Ok(checkpoints) => done += checkpoints,
            Err(error) => panic!("STILLPOINT_TEST_SEED={seed}: {error}"),
        }
    }
    println!("{done} checkpoints");
    assert!(given.is_some() || done > 4000, "only {done} checkpoints");
}
