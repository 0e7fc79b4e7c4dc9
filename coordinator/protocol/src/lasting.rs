//! Connections that end when the other side's host is silent.
//!
//! When a process ends, the kernel closes its connections. A host that loses its network or its power closes nothing: a reader would wait for ever, and the
//! kernel would resend data to it for a quarter of an hour. So the kernel probes a host that has been silent for a while, and ends a connection on which
//! nothing has been acknowledged for as long as the launch allows ([`Silence`]). A living host's kernel answers even if the process is busy or stopped.
//!
//! Connections between hosts are made and accepted in this module only. The coordinator has a listener of its own, but passes every connection through here
//! (`tests/only_way.rs`). The handshake on a blocking connection takes a [`Lasting`] one.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{
    KeepAlive, TcpKeepCount, TcpKeepIdle, TcpKeepInterval, TcpUserTimeout,
};
use serde::{Deserialize, Serialize};

use crate::key::Key;

/// The seconds for which a host may be silent before it counts as unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct Silence(u32);

impl Silence {
    /// The shortest one: the kernel counts in seconds.
    pub const SHORTEST: Silence = Silence(2);
    pub const LONGEST: Silence = Silence(3600);

    /// Returns `None` if the time is shorter than the shortest or longer than the longest.
    pub fn new(time: Duration) -> Option<Silence> {
        let seconds = u32::try_from(time.as_secs()).ok()?;
        let known = Silence::SHORTEST.0..=Silence::LONGEST.0;
        known.contains(&seconds).then_some(Silence(seconds))
    }

    /// The silence as a duration.
    pub fn time(self) -> Duration {
        Duration::from_secs(u64::from(self.0))
    }

    /// Seconds from the last data to the first probe, and from one probe to the next.
    fn questions(self) -> (u32, u32) {
        ((self.0 / 3).max(1), (self.0 / 6).max(1))
    }
}

impl From<u32> for Silence {
    /// Clamps a number from a file to the range, since the kernel is told milliseconds.
    fn from(seconds: u32) -> Silence {
        Silence(seconds.clamp(Silence::SHORTEST.0, Silence::LONGEST.0))
    }
}

impl From<Silence> for u32 {
    fn from(silence: Silence) -> u32 {
        silence.0
    }
}

impl Default for Silence {
    fn default() -> Silence {
        Silence(30)
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0)
    }
}

/// The key and the silence of all connections of a launch, from job.json.
#[derive(Clone, Debug)]
pub struct Terms {
    pub key: Key,
    pub silence: Silence,
}

impl From<Key> for Terms {
    /// The terms of a launch that chooses no silence.
    fn from(key: Key) -> Terms {
        let silence = Silence::default();
        Terms { key, silence }
    }
}

/// A connection that ends when the other host is silent.
#[derive(Debug)]
pub struct Lasting(TcpStream);

impl Lasting {
    /// Connects, within `patience`.
    pub fn connect(
        address: &SocketAddr,
        silence: Silence,
        patience: Duration,
    ) -> io::Result<Lasting> {
        let stream = TcpStream::connect_timeout(address, patience)?;
        stream.set_nodelay(true)?;
        end_when_silent(&stream, silence)?;
        Ok(Lasting(stream))
    }

    /// Accepts the next connection.
    pub fn accept(listener: &TcpListener, silence: Silence) -> io::Result<Lasting> {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        end_when_silent(&stream, silence)?;
        Ok(Lasting(stream))
    }

    /// Another handle to the same connection.
    pub fn try_clone(&self) -> io::Result<Lasting> {
        self.0.try_clone().map(Lasting)
    }
}

impl Deref for Lasting {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

impl DerefMut for Lasting {
    fn deref_mut(&mut self) -> &mut TcpStream {
        &mut self.0
    }
}

impl AsFd for Lasting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lets the kernel end a silent connection. The caller may have accepted it with a runtime of its own.
pub fn end_when_silent(stream: &impl AsFd, silence: Silence) -> io::Result<()> {
    let (first, next) = silence.questions();
    setsockopt(stream, KeepAlive, &true)?;
    setsockopt(stream, TcpKeepIdle, &first)?;
    setsockopt(stream, TcpKeepInterval, &next)?;
    // With `TCP_USER_TIMEOUT` the kernel does not count the probes; this count would give the same time.
    setsockopt(stream, TcpKeepCount, &((silence.0 - first).div_ceil(next)))?;
    setsockopt(stream, TcpUserTimeout, &(silence.0 * 1000))?;
    Ok(())
}

/// Whether a connection has ended because the other host was silent. Otherwise a process has ended it.
pub fn was_silent(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable, TimedOut};
    matches!(
        error.kind(),
        TimedOut | HostUnreachable | NetworkUnreachable
    )
}

/// Listens for connections at an address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::getsockopt;

    #[test]
    fn both_sides_of_a_connection_are_given_up_after_the_same_time() {
        let silence = Silence::new(Duration::from_secs(7)).unwrap();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let ours = Lasting::connect(&address, silence, Duration::from_secs(5)).unwrap();
        let theirs = Lasting::accept(&listener, silence).unwrap();
        for side in [&ours, &theirs, &ours.try_clone().unwrap()] {
            assert!(getsockopt(side, KeepAlive).unwrap());
            assert_eq!(getsockopt(side, TcpUserTimeout).unwrap(), 7000);
            assert_eq!(getsockopt(side, TcpKeepIdle).unwrap(), 2);
            assert_eq!(getsockopt(side, TcpKeepInterval).unwrap(), 1);
            assert_eq!(getsockopt(side, TcpKeepCount).unwrap(), 5);
            assert!(side.nodelay().unwrap());
        }
    }

    #[test]
    fn a_silence_is_neither_too_short_for_the_kernel_nor_endless() {
        let silence = |seconds| Silence::new(Duration::from_secs(seconds));
        assert_eq!(silence(1), None);
        assert_eq!(silence(3601), None);
        assert_eq!(silence(u64::MAX), None);
        assert_eq!(silence(2), Some(Silence::SHORTEST));
        assert_eq!(silence(3600), Some(Silence::LONGEST));
        for seconds in 2..=3600 {
            let (first, next) = Silence(seconds).questions();
            assert!(first >= 1 && next >= 1 && first + next <= seconds);
        }
        assert_eq!(serde_json::to_string(&Silence::default()).unwrap(), "30");
    }
}
