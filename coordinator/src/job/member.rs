//! One process of a job: the state of its life, and its location.

use stillpoint_protocol::agent::Hello;
use stillpoint_protocol::namespace::{Namespace, PidScope};

/// The state of a rank's life.
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
    /// It has reported that it ends, with this status.
    Ended(i32),
    /// Its connection has ended without such a report.
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

/// The process of one rank.
#[derive(Clone, Debug)]
pub struct Member {
    pub life: Life,
    /// Whether it is connected. A rank that has reported its end may still be.
    pub connected: bool,
    /// Whether its connection has ended because its host was silent. It may live, and come back.
    pub silent: bool,
    pub hello: Option<Hello>,
    /// The program without an agent that its process has become.
    pub unsplit: Option<String>,
}

/// A process's location. It differs for hosts of the same name, and for containers of one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    host: String,
    place: PidScope,
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

/// The state of a rank that cannot be reached.
const UNREACHABLE: &str = "unreachable";

impl Member {
    /// A rank that has not come yet.
    pub const fn starting() -> Member {
        Member {
            life: Life::Starting,
            connected: false,
            silent: false,
            hello: None,
            unsplit: None,
        }
    }

    /// Whether another living process has already started MPI as this rank.
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
