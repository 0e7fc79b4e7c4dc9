//! A blocking connection to the coordinator, for a program without a runtime.
//!
//! [`Connection::open`] shakes hands; [`Connection::split`] gives a [`Sender`], which any thread may
//! clone and use, and a [`Receiver`] for one thread.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::agent::{FromAgent, ToAgent};
use crate::codec::{self, CodecError, Decode, Encode, Frames};
use crate::command::{FromCommand, ToCommand};
use crate::handshake::{self, HandshakeError, Role};
use crate::key::Key;

/// How long a message may take to leave. A coordinator that does not read for so long is gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no connection, or no more.
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
    #[error("the connection to the coordinator broke: {0}")]
    Broken(#[from] io::Error),
    #[error("the coordinator sent {0}")]
    Codec(#[from] CodecError),
}

/// A connection on which both sides know each other.
#[derive(Debug)]
pub struct Connection<Out, In> {
    stream: TcpStream,
    messages: PhantomData<fn(Out) -> In>,
}

/// An agent's connection.
pub type AgentConnection = Connection<FromAgent, ToAgent>;
/// A command's connection.
pub type CommandConnection = Connection<FromCommand, ToCommand>;

impl AgentConnection {
    /// Connects as a rank's agent to the first of `addresses` ("host:port") that answers.
    pub fn open(addresses: &[String], key: &Key, patience: Duration) -> Result<Self, ClientError> {
        open(addresses, key, Role::Agent, patience)
    }
}

impl CommandConnection {
    /// Connects as a command to the first of `addresses` ("host:port") that answers.
    pub fn open(addresses: &[String], key: &Key, patience: Duration) -> Result<Self, ClientError> {
        open(addresses, key, Role::Command, patience)
    }
}

fn open<Out, In>(
    addresses: &[String],
    key: &Key,
    role: Role,
    patience: Duration,
) -> Result<Connection<Out, In>, ClientError> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in addresses {
        match reach(address, patience) {
            Ok(stream) => {
                shake_hands(&stream, address, key, role, patience)
                    .map_err(|error| silent(error, address, patience))?;
                return Ok(Connection {
                    stream,
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

fn reach(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A read that takes too long fails as if there were just nothing to read.
fn silent(error: ClientError, address: &str, patience: Duration) -> ClientError {
    match error {
        ClientError::Broken(source)
            if matches!(
                source.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ) =>
        {
            let address = address.to_owned();
            ClientError::Silent { address, patience }
        }
        other => other,
    }
}

fn shake_hands(
    mut stream: &TcpStream,
    address: &str,
    key: &Key,
    role: Role,
    patience: Duration,
) -> Result<(), ClientError> {
    let failed = |source| ClientError::Handshake {
        address: address.to_owned(),
        source,
    };
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    let client = handshake::Client::new(role)?;
    stream.write_all(client.hello())?;
    let mut hello = [0; handshake::SERVER_HELLO_BYTES];
    stream.read_exact(&mut hello)?;
    let (_version, proof) = client.answer(key, &hello).map_err(failed)?;
    stream.write_all(&proof)?;
    let mut verdict = [0; 1];
    stream.read_exact(&mut verdict)?;
    if verdict != [1] {
        return Err(failed(HandshakeError::WrongKey));
    }
    stream.set_read_timeout(None)?;
    Ok(())
}

impl<Out: Encode, In: Decode<()>> Connection<Out, In> {
    /// The two directions.
    pub fn split(self) -> Result<(Sender<Out>, Receiver<In>), ClientError> {
        let reader = self.stream.try_clone()?;
        Ok((
            Sender {
                stream: Arc::new(Mutex::new(self.stream)),
                messages: PhantomData,
            },
            Receiver {
                stream: reader,
                frames: Frames::default(),
                messages: PhantomData,
            },
        ))
    }
}

/// Sends messages; clones send on the same connection, each message whole.
#[derive(Debug)]
pub struct Sender<Out> {
    stream: Arc<Mutex<TcpStream>>,
    messages: PhantomData<fn(Out)>,
}

impl<Out> Clone for Sender<Out> {
    fn clone(&self) -> Self {
        Sender {
            stream: Arc::clone(&self.stream),
            messages: PhantomData,
        }
    }
}

impl<Out: Encode> Sender<Out> {
    /// Returns when the message is with the kernel.
    pub fn send(&self, message: &Out) -> Result<(), ClientError> {
        let frame = codec::encode(message)?;
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&frame)?;
        Ok(())
    }

    /// Ends the connection in both directions, so that a receiver that waits returns `Closed`.
    pub fn close(&self) {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails only when the connection has already gone.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received<In> {
    Message(In),
    /// Nothing in the given time.
    Nothing,
    /// The coordinator has ended the connection.
    Closed,
}

/// Receives messages.
#[derive(Debug)]
pub struct Receiver<In> {
    stream: TcpStream,
    frames: Frames,
    messages: PhantomData<fn() -> In>,
}

impl<In: Decode<()>> Receiver<In> {
    /// Waits for the next message; never [`Received::Nothing`].
    pub fn receive(&mut self) -> Result<Received<In>, ClientError> {
        self.receive_until(None)
    }

    /// Waits for the next message, at most so long. `Duration::ZERO` takes what is there.
    ///
    /// Whoever polls [`Receiver::as_fd`] with other descriptors calls this until it says `Nothing`
    /// before polling again: messages that have arrived together are kept here.
    pub fn receive_within(&mut self, patience: Duration) -> Result<Received<In>, ClientError> {
        self.receive_until(Some(Instant::now() + patience))
    }

    fn receive_until(&mut self, deadline: Option<Instant>) -> Result<Received<In>, ClientError> {
        let mut bytes = [0; 16 << 10];
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
                Ok(count) => self.frames.push(&bytes[..count]),
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
    /// This side's address, which leads here from wherever the coordinator is.
    pub fn local_ip(&self) -> io::Result<IpAddr> {
        self.stream.local_addr().map(|address| address.ip())
    }
}

impl<In> AsFd for Receiver<In> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
