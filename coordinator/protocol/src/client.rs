//! A blocking connection to the coordinator, for a program without a runtime.
//!
//! [`Connection::open`] shakes hands; [`Connection::split`] gives a [`Sender`], which any thread may
//! clone and use, and a [`Receiver`] for one thread.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::{IpAddr, Shutdown, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::agent::{FromAgent, ToAgent};
use crate::codec::{self, CodecError, Decode, Encode, Frames};
use crate::command::{FromCommand, ToCommand};
use crate::greeting::{self, GreetingError};
use crate::handshake::{HandshakeError, Role};
use crate::key::Key;
use crate::lasting::{Lasting, Terms, was_silent};
use crate::sealed::{Channel, Opener, SealError, Sealer};

/// The time that a message may take to leave. A coordinator that does not read for so long is gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// The reason why there is no connection, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach the coordinator at {addresses}: {source}")]
    Unreachable {
        addresses: String,
        source: io::Error,
    },
    #[error("the coordinator at {address} did not accept this connection: {source}")]
    Handshake {
        address: String,
        source: HandshakeError,
    },
    #[error("the coordinator at {address} has not answered for {} s", patience.as_secs())]
    Silent { address: String, patience: Duration },
    #[error("the coordinator's host does not answer any more: {0}")]
    HostSilent(io::Error),
    #[error("the connection to the coordinator broke: {0}")]
    Broken(io::Error),
    #[error("the coordinator sent {0}")]
    Codec(#[from] CodecError),
    #[error("cannot read from the coordinator: {0}")]
    Sealed(#[from] SealError),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        match was_silent(&error) {
            true => ClientError::HostSilent(error),
            false => ClientError::Broken(error),
        }
    }
}

/// A connection on which both sides have authenticated each other.
#[derive(Debug)]
pub struct Connection<Out, In> {
    stream: Lasting,
    sealer: Sealer,
    opener: Opener,
    messages: PhantomData<fn(Out) -> In>,
}

/// An agent's connection.
pub type AgentConnection = Connection<FromAgent, ToAgent>;
/// A command's connection.
pub type CommandConnection = Connection<FromCommand, ToCommand>;

impl AgentConnection {
    /// Connects as a rank's agent to the first of `addresses` ("host:port") that answers.
    pub fn open(
        addresses: &[String],
        terms: &Terms,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        open(addresses, terms, Role::Agent, patience)
    }
}

impl CommandConnection {
    /// Connects as a command to the first of `addresses` ("host:port") that answers.
    pub fn open(
        addresses: &[String],
        terms: &Terms,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        open(addresses, terms, Role::Command, patience)
    }
}

fn open<Out, In>(
    addresses: &[String],
    terms: &Terms,
    role: Role,
    patience: Duration,
) -> Result<Connection<Out, In>, ClientError> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in addresses {
        match reach(address, terms, patience) {
            Ok(stream) => {
                let channel = shake_hands(&stream, address, &terms.key, role, patience)?;
                let (sealer, opener) = channel.split();
                return Ok(Connection {
                    stream,
                    sealer,
                    opener,
                    messages: PhantomData,
                });
            }
            Err(error) => last = error,
        }
    }
    Err(ClientError::Unreachable {
        addresses: addresses.join(", "),
        source: last,
    })
}

fn reach(address: &str, terms: &Terms, patience: Duration) -> io::Result<Lasting> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for resolved in address.to_socket_addrs()? {
        match Lasting::connect(&resolved, terms.silence, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn shake_hands(
    stream: &Lasting,
    address: &str,
    key: &Key,
    role: Role,
    patience: Duration,
) -> Result<Channel, ClientError> {
    let channel = greeting::greet(stream, key, role, patience);
    let channel = channel.map_err(|error| match error {
        GreetingError::Handshake(source) => ClientError::Handshake {
            address: address.to_owned(),
            source,
        },
        GreetingError::Broken(source) if source.kind() == io::ErrorKind::TimedOut => {
            ClientError::Silent {
                address: address.to_owned(),
                patience,
            }
        }
        GreetingError::Broken(source) => source.into(),
    })?;
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    Ok(channel)
}

impl<Out: Encode, In: Decode<()>> Connection<Out, In> {
    /// Splits the connection into its two directions.
    pub fn split(self) -> Result<(Sender<Out>, Receiver<In>), ClientError> {
        let reader = self.stream.try_clone()?;
        Ok((
            Sender {
                to: Arc::new(Mutex::new(Outgoing {
                    stream: self.stream,
                    sealer: self.sealer,
                })),
                messages: PhantomData,
            },
            Receiver {
                stream: reader,
                opener: self.opener,
                frames: Frames::default(),
                messages: PhantomData,
            },
        ))
    }
}

/// Sends messages; clones send on the same connection, each message whole.
#[derive(Debug)]
pub struct Sender<Out> {
    to: Arc<Mutex<Outgoing>>,
    messages: PhantomData<fn(Out)>,
}

/// The sending half. Records are numbered in the order in which they are sent.
#[derive(Debug)]
struct Outgoing {
    stream: Lasting,
    sealer: Sealer,
}

impl<Out> Clone for Sender<Out> {
    fn clone(&self) -> Self {
        Sender {
            to: Arc::clone(&self.to),
            messages: PhantomData,
        }
    }
}

impl<Out: Encode> Sender<Out> {
    /// Sends a message. Returns when the kernel has taken it.
    pub fn send(&self, message: &Out) -> Result<(), ClientError> {
        let frame = codec::encode(message)?;
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sealed = Vec::new();
        to.sealer.seal(&frame, &mut sealed)?;
        to.stream.write_all(&sealed)?;
        Ok(())
    }

    /// Ends the connection in both directions: a waiting receiver returns `Closed`.
    pub fn close(&self) {
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // This fails only if the connection has already gone.
        let _ = to.stream.shutdown(Shutdown::Both);
    }
}

/// The result of receiving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received<In> {
    Message(In),
    /// No message came in the given time.
    Nothing,
    /// The coordinator has ended the connection.
    Closed,
}

/// Receives messages.
#[derive(Debug)]
pub struct Receiver<In> {
    stream: Lasting,
    opener: Opener,
    frames: Frames,
    messages: PhantomData<fn() -> In>,
}

impl<In: Decode<()>> Receiver<In> {
    /// Waits for the next message; never [`Received::Nothing`].
    pub fn receive(&mut self) -> Result<Received<In>, ClientError> {
        self.receive_until(None)
    }

    /// Waits for the next message, at most for `patience`. `Duration::ZERO` takes a message that has arrived.
    ///
    /// A caller that polls [`Receiver::as_fd`] together with other descriptors must call this until it returns `Nothing` before it polls again: messages that
    /// have arrived together are kept here.
    pub fn receive_within(&mut self, patience: Duration) -> Result<Received<In>, ClientError> {
        self.receive_until(Some(Instant::now() + patience))
    }

    fn receive_until(&mut self, deadline: Option<Instant>) -> Result<Received<In>, ClientError> {
        let mut bytes = [0; 16 << 10];
        let mut opened = Vec::new();
        loop {
            if let Some(message) = self.frames.next_message()? {
                return Ok(Received::Message(message));
            }
            if let Some(deadline) = deadline
                && !self.readable_before(deadline)?
            {
                return Ok(Received::Nothing);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Received::Closed),
                Ok(count) => {
                    opened.clear();
                    self.opener.open(&bytes[..count], &mut opened)?;
                    self.frames.push(&opened);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Received::Closed);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn readable_before(&self, deadline: Instant) -> io::Result<bool> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up, so that a wait of less than a millisecond does not spin.
            let left = left.as_nanos().div_ceil(1_000_000).min(60_000) as u16;
            let mut descriptors = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            match poll(&mut descriptors, PollTimeout::from(left)) {
                Ok(0) if Instant::now() >= deadline => return Ok(false),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<In> Receiver<In> {
    /// This side's address, which leads here from the coordinator's host.
    pub fn local_ip(&self) -> io::Result<IpAddr> {
        self.stream.local_addr().map(|address| address.ip())
    }
}

impl<In> AsFd for Receiver<In> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
