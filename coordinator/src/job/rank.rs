//! One rank of a job: where it stands in its life, and where it is.

use stillpoint_protocol::agent::Hello;
use stillpoint_protocol::namespace::{Namespace, Place};

/// Where a rank stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Its agent has not connected yet.
    Starting,
    /// Connected; MPI not initialised.
    Connected,
    /// Between `MPI_Init` and `MPI_Finalize`.
    InMpi,
    /// `MPI_Finalize` has returned.
    AfterMpi,
    /// Said that it ends, with this status.
    Ended(i32),
    /// Its connection ended and it had not said so.
    Lost,
}

impl Life {
    /// Whether a rank in a state of this name has been lost, or may be.
    pub fn is_gone(state: &str) -> bool {
        state == UNREACHABLE || state == Life::Lost.name()
    }

    const fn name(self) -> &'static str {
        match self {
            Life::Starting => "starting",
            Life::Connected => "connected",
            Life::InMpi => "in MPI",
            Life::AfterMpi => "after MPI",
            Life::Ended(_) => "ended",
            Life::Lost => "lost",
        }
    }
}

/// One rank.
#[derive(Clone, Debug)]
pub struct Rank {
    pub life: Life,
    /// Whether its connection stands (a rank that has said that it ends may still have one).
    pub connected: bool,
    /// Its connection has ended because its host was silent. It may live, and come back.
    pub silent: bool,
    pub hello: Option<Hello>,
}

/// Where a process is, told apart from hosts of the same name and from other containers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    host: String,
    place: Place,
}

impl Location {
    pub fn new(host: &str, namespace: Namespace) -> Location {
        Location {
            host: host.to_owned(),
            place: namespace.place(),
        }
    }

    pub fn of(hello: &Hello) -> Location {
        Location::new(&hello.host, hello.namespace)
    }
}

/// What a rank that cannot be reached is called.
const UNREACHABLE: &str = "unreachable";

impl Rank {
    /// One that has not come yet.
    pub const fn starting() -> Rank {
        Rank {
            life: Life::Starting,
            connected: false,
            silent: false,
            hello: None,
        }
    }

    /// Whether another process that lives has started MPI as this rank already.
    pub fn is_taken_by_another(&self, hello: &Hello) -> bool {
        let runs = self.connected && matches!(self.life, Life::Connected | Life::InMpi);
        let known = self.hello.as_ref();
        let another = |known: &Hello| {
            known.late && (known.pid != hello.pid || Location::of(known) != Location::of(hello))
        };
        runs && hello.late && known.is_some_and(another)
    }

    /// Whether it is the same process on the same host, and has not been given up.
    pub fn is_of(&self, hello: &Hello) -> bool {
        let lives = !matches!(self.life, Life::Starting | Life::Ended(_) | Life::Lost);
        let known = self.hello.as_ref();
        lives
            && known.is_some_and(|known| {
                known.pid == hello.pid && Location::of(known) == Location::of(hello)
            })
    }

    pub const fn state(&self) -> &'static str {
        match self.silent {
            true => UNREACHABLE,
            false => self.life.name(),
        }
    }
}
