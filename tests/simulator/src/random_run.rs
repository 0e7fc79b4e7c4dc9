//! Random programs in random interleavings, with checkpoints at random moments.

use crate::job::{Action, Circumstances, Job, State};
use crate::mutant::Mutant;
use crate::random::{Numbers, Style};

/// The actor of an action, which may be asleep: kind and rank in one number.
fn actor(action: Action) -> Option<usize> {
    match action {
        Action::Step(rank)
        | Action::Stop(rank)
        | Action::Wake(rank)
        | Action::Test(rank)
        | Action::Ask(rank)
        | Action::Carry(rank)
        | Action::Pull(rank) => Some(rank),
        Action::Obey(rank)
        | Action::CountHastily(rank)
        | Action::Look(rank)
        | Action::Inquire(rank) => Some(16 + rank),
        Action::Deliver(rank) => Some(32 + rank),
        Action::Pause => Some(48),
        Action::Request | Action::Abort | Action::CarryOn | Action::Restart => None,
    }
}

/// The events of a job, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Checkpoints that were drained.
    pub checkpoints: u32,
    /// Operations that were carried out ahead of an application.
    pub ahead: u32,
}

/// Runs the random job of a seed to its end, with checkpoints and restarts, in at most so many steps. Returns the events, or an error that says what went
/// wrong.
pub fn run<S: Mutant>(seed: u64, most_steps: usize) -> Result<Figures, String> {
    run_kept_by::<S>(seed, most_steps, false, Style::default())
}

/// The same under two-phase commit: without nonblocking collective operations.
pub fn run_two_phase<S: Mutant>(seed: u64, most_steps: usize) -> Result<Figures, String> {
    let style = Style {
        blocking: true,
        ..Style::default()
    };
    run_kept_by::<S>(seed, most_steps, true, style)
}

/// The same with members that come late, and operations that are carried out in advance for them.
pub fn run_late<S: Mutant>(seed: u64, most_steps: usize) -> Result<Figures, String> {
    let style = Style {
        late: true,
        ..Style::default()
    };
    run_kept_by::<S>(seed, most_steps, false, style)
}

fn run_kept_by<S: Mutant>(
    seed: u64,
    most_steps: usize,
    two_phase: bool,
    style: Style,
) -> Result<Figures, String> {
    let mut numbers = Numbers(seed);
    let ranks = 1 + numbers.below(8);
    let happenings = numbers.below(40);
    let program = crate::random::program(&mut numbers, ranks, happenings, style);
    let circumstances = Circumstances {
        checkpoints: 3,
        aborts: u32::from(numbers.below(4) == 0),
        hasty_polls: 20,
        hasty_counts: 5,
        two_phase,
        restarts: 3,
        patient: false,
        ends_early: false,
        asks: style.late.then_some(20),
    };
    let job: Job<S> = Job::new(program, circumstances).map_err(|error| error.to_string())?;
    walk(&job, &mut numbers, most_steps)
}

/// Runs a job to its end in a random interleaving, in at most so many steps.
pub fn walk<S: Mutant>(
    job: &Job<S>,
    numbers: &mut Numbers,
    most_steps: usize,
) -> Result<Figures, String> {
    let mut state = job.start();
    let mut actions = vec![];
    // Some actors sleep for a while, so that the others get far ahead of them.
    let mut asleep = 0;
    let mut carried = 0;
    for steps in 0..most_steps {
        if steps % 64 == 0 {
            asleep = numbers.draw() & numbers.draw();
        }
        actions.clear();
        job.actions(&state, &mut actions);
        if actions.is_empty() {
            return end(job, &state, carried / 2);
        }
        let action = actions[numbers.below(actions.len())];
        let rare = matches!(action, Action::Request | Action::Abort) && actions.len() > 1;
        let sleeps = actor(action).is_some_and(|actor| asleep >> actor & 1 == 1);
        if rare && numbers.below(16) > 0 || sleeps && actions.len() > 1 {
            continue;
        }
        // One step begins an operation, another one ends it.
        carried += u32::from(matches!(action, Action::Carry(_)));
        job.happen(&mut state, action);
    }
    Err(format!(
        "no end after {most_steps} steps\n{}",
        state.in_words(job)
    ))
}

fn end<S: Mutant>(job: &Job<S>, state: &State<S>, ahead: u32) -> Result<Figures, String> {
    match job.ended(state) {
        true => Ok(Figures {
            checkpoints: state.done,
            ahead,
        }),
        false => Err(format!("{:?}\n{}", state.broken, state.in_words(job))),
    }
}
