//! A rank without an application: an agent that follows the protocol.

use stillpoint_ids::Rank;
use stillpoint_image::Identity;
use stillpoint_protocol::absent::MemberAnswer;
use stillpoint_protocol::agent::{Begin, Doing, FromAgent, Hello, Order, Progress, State, ToAgent};
use stillpoint_protocol::client::AgentConnection;
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::{Received, Receiver, Sender};
use stillpoint_refusals::Refusal;

use super::PATIENCE;
use super::image::{self, Builds};

/// A rank's unusual behaviour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Character {
    /// Reasons against a checkpoint.
    pub refusals: Vec<Refusal>,
    /// The error with which writing its image fails.
    pub disk_full: Option<Refusal>,
    /// The order at which it ends without a report.
    pub dies_at: Option<&'static str>,
    /// Whether it never reaches its targets.
    pub runs_on: bool,
    /// Messages sent and received.
    pub counts: (u64, u64),
    /// The clocks that it reports.
    pub clocks: Vec<(u64, u64)>,
    /// The group whose target it goes past once, after it knows its targets, and the new target.
    pub raises: Option<(u64, u64)>,
    /// The base of its images, if each has chunks in those before it. The first one has chunks in this base.
    pub builds: Option<Builds>,
}

/// The end of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Terminated,
    Died,
    Told,
    /// The coordinator went away.
    Alone,
}

/// A rank's agent.
pub struct Agent {
    sender: Sender<FromAgent>,
    receiver: Receiver<ToAgent>,
    rank: Rank,
    size: u32,
    job: String,
    character: Character,
    seen: u64,
    begin: Option<Begin>,
    /// The number of releases of the application by orders.
    pub released: u32,
}

impl Agent {
    pub fn connect(job: &JobFile, rank: Rank, character: Character) -> Agent {
        let connection = AgentConnection::open(&job.addresses, &job.terms(), PATIENCE).unwrap();
        let (sender, receiver) = connection.split().unwrap();
        let hello = Hello {
            rank,
            size: job.ranks,
            pid: std::process::id(),
            host: "here".into(),
            namespace: Default::default(),
            launch: job.launch.clone(),
            restarted_from: None,
            returns: false,
            late: false,
        };
        sender.send(&FromAgent::Hello(hello)).unwrap();
        let mut agent = Agent {
            sender,
            receiver,
            rank,
            size: job.ranks,
            job: job.job.clone(),
            character,
            seen: 0,
            begin: None,
            released: 0,
        };
        assert_eq!(agent.next(), Some(ToAgent::Welcome));
        agent.send(&FromAgent::MpiReady);
        agent
    }

    pub fn next(&mut self) -> Option<ToAgent> {
        match self.receiver.receive().ok()? {
            Received::Message(message) => Some(message),
            Received::Nothing | Received::Closed => None,
        }
    }

    pub fn send(&self, message: &FromAgent) {
        // The coordinator may have gone: then `next` returns nothing.
        let _ = self.sender.send(message);
    }

    /// Lives until it is told to end, dies, or is alone. The end is `MemberAnswer` if a barrier of the job has ended it.
    pub fn live(mut self) -> End {
        while let Some(message) = self.next() {
            if let ToAgent::Checkpoint { attempt, order } = message {
                if self.character.dies_at == Some(name(&order)) {
                    self.sender.close();
                    return End::Died;
                }
                if order == Order::Terminate {
                    self.send(&FromAgent::Exiting { status: 0 });
                    self.sender.close();
                    return End::Terminated;
                }
                self.obey(attempt, order);
            } else if message == (ToAgent::BarrierPassed { name: "end".into() }) {
                self.send(&FromAgent::Exiting { status: 0 });
                self.sender.close();
                return End::Told;
            }
        }
        End::Alone
    }

    fn say(&self, attempt: u64, progress: Progress) {
        self.send(&FromAgent::Progress { attempt, progress });
    }

    fn report(&self, attempt: u64, poll: u32) {
        let doing = match self.character.runs_on {
            true => Doing::Running,
            false => Doing::Parked,
        };
        let (sent, received) = self.character.counts;
        let state = State {
            doing,
            seen: self.seen,
            poll,
            sent,
            received,
            begun: 0,
        };
        self.say(attempt, Progress::State(state));
    }

    fn obey(&mut self, attempt: u64, order: Order) {
        let (sent, received) = self.character.counts;
        match order {
            Order::Begin(begin) => {
                self.begin = Some(begin);
                let clocks = self.character.clocks.clone();
                self.say(attempt, Progress::Clocks { clocks });
            }
            Order::Targets { version, .. } => {
                self.seen = version;
                if let Some((ggid, seq)) = self.character.raises.take() {
                    self.say(attempt, Progress::Raise { ggid, seq });
                }
                self.report(attempt, 0);
            }
            Order::Raised { version, .. } | Order::Advance { version, .. } => {
                self.seen = version;
                self.report(attempt, 0);
            }
            Order::Poll { poll } => self.report(attempt, poll),
            Order::Check => {
                let refusals = self.character.refusals.clone();
                self.say(attempt, Progress::CheckResult { refusals });
            }
            Order::Drain { round } => self.say(
                attempt,
                Progress::Counts {
                    round,
                    sent,
                    received,
                },
            ),
            Order::Seal => self.say(attempt, Progress::Sealed),
            Order::WriteApart { .. } if self.character.disk_full.is_none() => {
                self.say(attempt, Progress::Apart);
            }
            Order::RunOn => self.write(attempt),
            Order::Write | Order::WriteApart { .. } => match &self.character.disk_full {
                Some(reason) => {
                    let reason = reason.clone();
                    self.say(attempt, Progress::WriteFailed { reason });
                }
                None => self.write(attempt),
            },
            Order::Committed | Order::Abort { .. } => {
                if let Some(builds) = &mut self.character.builds {
                    builds.settled(order == Order::Committed);
                }
                self.released += 1;
                self.say(attempt, Progress::Released);
            }
            Order::Tell { .. } => self.say(attempt, Progress::Told(MemberAnswer::default())),
            Order::CarryOut { .. } | Order::Terminate | Order::Size | Order::Stage(_) => {}
        }
    }
}

impl Agent {
    fn write(&mut self, attempt: u64) {
        let begin = self.begin.as_ref().unwrap();
        let identity = Identity {
            job: self.job.clone(),
            epoch: begin.epoch,
            rank: self.rank,
            size: self.size,
            command: vec![],
        };
        let written = image::write(begin, &identity, self.character.builds.as_mut());
        self.say(attempt, Progress::Written(written));
    }
}

fn name(order: &Order) -> &'static str {
    match order {
        Order::Begin(_) => "begin",
        Order::Targets { .. } => "targets",
        Order::Raised { .. } => "raised",
        Order::Advance { .. } => "advance",
        Order::Poll { .. } => "poll",
        Order::Tell { .. } => "tell",
        Order::CarryOut { .. } => "carry out",
        Order::Check => "check",
        Order::Drain { .. } => "drain",
        Order::Seal => "seal",
        Order::Write => "write",
        Order::WriteApart { .. } => "write apart",
        Order::RunOn => "run on",
        Order::Size => "size",
        Order::Stage(_) => "stage",
        Order::Committed => "committed",
        Order::Abort { .. } => "abort",
        Order::Terminate => "terminate",
    }
}
