//! Tests of the job, driven by ranks and commands that are plain values.

mod ahead;
mod commit;
mod giving_up;
mod hindered;
mod periodic;
mod ranks;
mod requests;
mod silent;
mod staging;
mod stopped;
mod write_behind;

use std::time::Duration;

use stillpoint_clock::rank::Activity;
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::agent::{
    FromAgent, Hello, Incremental, KnownAs, Neighbour, Order, Progress, State, ToAgent, Written,
};
use stillpoint_protocol::command::{Requester, ToCommand};
use stillpoint_protocol::job_file::JobState;
use stillpoint_protocol::namespace::Namespace;
use stillpoint_refusals::{Code, Refusal, refusal};

use super::{Input, Job, Location, Output, Patience, Settings, StoppedRank};

/// A job with its time and its outputs.
struct World {
    job: Job,
    now: Duration,
    outputs: Vec<Output>,
}

const RANKS: u32 = 3;

impl World {
    fn starting() -> World {
        World::with(None)
    }

    fn with(interval: Option<Duration>) -> World {
        World::of(World::settings(interval))
    }

    fn settings(interval: Option<Duration>) -> Settings {
        Settings {
            ranks: RANKS,
            launch: "l".into(),
            location: Location::new("h", Namespace::told_of(1, "", "")),
            directory: "/d".into(),
            mark: crate::epoch::Mark::none(),
            attempts_before: 0,
            compress: "lz4".into(),
            incremental: Incremental::Off,
            dedup: true,
            copies: None,
            precopy: false,
            next_epoch: Epoch(5),
            newest_epoch: Some(Epoch(4)),
            interval: interval.map(Into::into),
            mttf: None,
            costs: None,
            not_suspended: None,
            has_begun: false,
            silence: stillpoint_protocol::Silence::default(),
            suspended_status: 75,
            requeue: false,
            staging: None,
            restarted_from: None,
            recovers: None,
            patience: Patience::default(),
        }
    }

    fn of(settings: Settings) -> World {
        World {
            job: Job::new(settings, Duration::ZERO),
            now: Duration::ZERO,
            outputs: vec![],
        }
    }

    fn running() -> World {
        let mut world = World::starting();
        world.connect_all();
        world
    }

    fn connect_all(&mut self) {
        for rank in 0..RANKS {
            let outputs = self.job.admit(hello(rank), self.now).unwrap();
            self.outputs.extend(outputs);
            self.agent(rank, FromAgent::MpiReady);
        }
    }

    fn input(&mut self, input: Input) {
        let outputs = self.job.on(self.now, input);
        self.outputs.extend(outputs);
    }

    fn agent(&mut self, rank: u32, message: FromAgent) {
        let rank = Rank(rank);
        self.input(Input::Agent { rank, message });
    }

    fn say(&mut self, rank: u32, attempt: u64, progress: Progress) {
        self.agent(rank, FromAgent::Progress { attempt, progress });
    }

    fn all_say(&mut self, attempt: u64, progress: Progress) {
        for rank in 0..RANKS {
            self.say(rank, attempt, progress.clone());
        }
    }

    fn ask(&mut self, watcher: u64, suspend: bool) {
        self.input(Input::Checkpoint {
            watcher,
            suspend,
            timeout: None,
            waits: false,
            asked: None,
        });
    }

    /// Lets time pass until the job's next deadline, then ticks.
    fn sleep(&mut self) {
        self.now = self.job.deadline().expect("nothing is due").max(self.now);
        self.input(Input::Tick);
    }

    fn orders(&self) -> Vec<&Order> {
        self.outputs
            .iter()
            .filter_map(|output| match output {
                Output::Broadcast(ToAgent::Checkpoint { order, .. }) => Some(order),
                _ => None,
            })
            .collect()
    }

    fn told(&self, watcher: u64) -> Vec<&ToCommand> {
        self.outputs
            .iter()
            .filter_map(|output| match output {
                Output::Tell {
                    watcher: to,
                    message,
                } if *to == watcher => Some(message),
                _ => None,
            })
            .filter(|message| !matches!(message, ToCommand::Phase { .. }))
            .collect()
    }

    fn has(&self, output: &Output) -> bool {
        self.outputs.contains(output)
    }

    /// From the request to the order to write.
    fn up_to_write(&mut self, attempt: u64) {
        self.up_to_seal(attempt);
        assert_eq!(self.orders().last(), Some(&&Order::Write));
    }

    /// From the request until every rank is sealed and the directory has been made.
    fn up_to_seal(&mut self, attempt: u64) {
        self.all_say(attempt, Progress::Clocks { clocks: vec![] });
        self.all_say(attempt, parked(1));
        self.all_say(attempt, Progress::CheckResult { refusals: vec![] });
        self.all_say(attempt, counts(1));
        self.sleep();
        self.all_say(attempt, counts(2));
        self.all_say(attempt, Progress::Sealed);
        self.input(Input::Prepared {
            attempt,
            result: Ok(()),
        });
    }

    fn up_to_commit(&mut self, attempt: u64) {
        self.up_to_write(attempt);
        self.all_say(attempt, Progress::Written(written()));
        assert!(
            matches!(self.outputs.last(), Some(Output::Commit { images, .. }) if images.len() == 3)
        );
    }

    fn epoch_under_way(&self) -> Epoch {
        self.outputs
            .iter()
            .rev()
            .find_map(|output| match output {
                Output::Prepare { epoch, .. } => Some(*epoch),
                _ => None,
            })
            .expect("no epoch was begun")
    }

    fn committed(&mut self, epoch: Epoch) {
        let attempt = self.job.attempts;
        self.input(Input::Committed {
            attempt,
            result: Ok(format!("/d/epoch-{epoch:06}")),
        });
    }
}

fn hello(rank: u32) -> Hello {
    Hello {
        rank: Rank(rank),
        size: RANKS,
        pid: 10 + rank,
        host: "h".into(),
        namespace: Namespace::told_of(1, "", ""),
        launch: "l".into(),
        restarted_from: None,
        returns: false,
        late: false,
    }
}

fn parked(seen: u64) -> Progress {
    state(Activity::Parked, seen, 0)
}

fn state(activity: Activity, seen: u64, poll: u32) -> Progress {
    Progress::State(State {
        doing: activity.into(),
        seen,
        poll,
        sent: 7,
        received: 7,
        begun: 0,
    })
}

fn counts(round: u32) -> Progress {
    Progress::Counts {
        round,
        sent: 7,
        received: 7,
    }
}

fn written() -> Written {
    Written {
        stored_bytes: 10,
        bytes: 40,
        digest: 1,
        seconds: 0.1,
        contract: 5,
        needs: vec![],
        increment: None,
    }
}
