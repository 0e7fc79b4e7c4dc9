//! Messages from node to node: blocks of images, on their way to another node's fast tier, and back from there before a restart.
//!
//! A connection begins with the usual handshake, with the role [`Role::Peer`]; then follow requests as frames. The raw bytes of a block follow its
//! [`Request::Put`], or the answer to its [`Request::Get`]. A [`Request::Put`] has no answer of its own, so that blocks follow each other without a pause:
//! [`Request::Close`] has it.

pub mod serve;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;
use stillpoint_ids::{Epoch, Rank};

use crate::codec::{self, CodecError, Decode, Encode, MAX_FRAME};
use crate::greeting::{self, GreetingError};
use crate::handshake::{HandshakeError, Role};
use crate::key::Key;
use crate::lasting::{self, Lasting, Terms};
use crate::sealed::{self, Channel, LENGTH_BYTES, Opener, SealError, Sealer};

/// The length of the longest block.
pub const MAX_BLOCK: u32 = 4 << 20;
/// The time without reading or writing after which a peer counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request of the sender.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Request {
    /// A block of a rank's image; `bytes` bytes follow.
    Put {
        /// The attempt at the epoch: blocks of an earlier attempt are dropped.
        attempt: u64,
        #[bincode(with_serde)]
        epoch: Epoch,
        #[bincode(with_serde)]
        rank: Rank,
        offset: u64,
        bytes: u32,
        /// Whether it is a second copy, which is not flushed while the first one is there.
        copy: bool,
    },
    /// A block that only measures the way.
    Probe { bytes: u32 },
    /// All blocks are sent: answer whether all are kept.
    Close,
    /// A block of a rank's image of the epoch to restart, by its number in the image's table.
    Get {
        #[bincode(with_serde)]
        rank: Rank,
        block: u32,
    },
}

/// The answer to [`Request::Close`] and [`Request::Get`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Answer {
    Kept {
        bytes: u64,
    },
    Failed {
        reason: String,
    },
    /// The block, whole by its checksum; `bytes` bytes follow.
    Block {
        bytes: u32,
    },
    /// The block is not here (any more).
    Missing,
}

/// The reason why two agents do not agree, or part.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("cannot reach the peer at {address}: {source}")]
    Unreachable { address: String, source: io::Error },
    #[error("the peer at {address} did not accept this connection: {source}")]
    Handshake {
        address: String,
        source: HandshakeError,
    },
    #[error("the connection to a peer broke: {0}")]
    Broken(#[from] io::Error),
    #[error("a peer sent {0}")]
    Codec(#[from] CodecError),
    #[error("cannot read from a peer: {0}")]
    Sealed(#[from] SealError),
    #[error("{0}")]
    Refused(String),
}

/// A connection between agents that have authenticated each other.
#[derive(Debug)]
pub struct Peer {
    stream: Lasting,
    sealer: Sealer,
    opener: Opener,
    /// Bytes to send. The buffers are reused for every message.
    outgoing: Vec<u8>,
    /// A record as it came.
    record: Vec<u8>,
    /// Bytes of opened records, and the number of those that were taken.
    opened: Vec<u8>,
    taken: usize,
}

impl Peer {
    /// Connects to the agent at `address` ("host:port").
    pub fn open(address: &str, terms: &Terms, patience: Duration) -> Result<Peer, PeerError> {
        let unreachable = |source| PeerError::Unreachable {
            address: address.to_owned(),
            source,
        };
        let resolved = address
            .to_socket_addrs()
            .map_err(unreachable)?
            .next()
            .ok_or_else(|| unreachable(io::ErrorKind::NotFound.into()))?;
        let stream = Lasting::connect(&resolved, terms.silence, patience).map_err(unreachable)?;
        let channel = greeting::greet(&stream, &terms.key, Role::Peer, patience)
            .map_err(|error| refused(error, address))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Peer::speaking(stream, channel)
    }

    /// The server's side of a new connection, within `patience`. Returns an error if the client does not belong to the job.
    fn shake_hands(stream: &Lasting, key: &Key, patience: Duration) -> Result<Channel, PeerError> {
        let (role, channel) = greeting::admit(stream, key, patience)
            .map_err(|error| refused(error, "another agent"))?;
        match role {
            // A peer may hold its connection for as long as the job runs, so there is no deadline for reading.
            Role::Peer => Ok(channel),
            _ => Err(refused(HandshakeError::NotOurs.into(), "another agent")),
        }
    }

    fn speaking(stream: Lasting, channel: Channel) -> Result<Peer, PeerError> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let (sealer, opener) = channel.split();
        Ok(Peer {
            stream,
            sealer,
            opener,
            outgoing: Vec::new(),
            record: Vec::new(),
            opened: Vec::new(),
            taken: 0,
        })
    }

    /// Sends a request and, with [`Request::Put`] and [`Request::Probe`], the bytes that follow it.
    pub fn send(&mut self, request: &Request, bytes: &[u8]) -> Result<(), PeerError> {
        self.say(request, bytes)
    }

    fn say<M: Encode>(&mut self, message: &M, bytes: &[u8]) -> Result<(), PeerError> {
        self.outgoing.clear();
        self.sealer
            .seal(&codec::encode(message)?, &mut self.outgoing)?;
        self.sealer.seal(bytes, &mut self.outgoing)?;
        self.stream.write_all(&self.outgoing)?;
        Ok(())
    }

    /// Asks whether everything that was sent is kept; waits for the answer.
    pub fn close(&mut self) -> Result<u64, PeerError> {
        self.send(&Request::Close, &[])?;
        match self.receive()? {
            Some(Answer::Kept { bytes }) => Ok(bytes),
            Some(Answer::Failed { reason }) => Err(PeerError::Refused(reason)),
            answer => Err(unexpected(answer)),
        }
    }

    /// Asks for a block; `None`: the peer does not have it.
    pub fn get(&mut self, rank: Rank, block: u32) -> Result<Option<Vec<u8>>, PeerError> {
        self.send(&Request::Get { rank, block }, &[])?;
        match self.receive()? {
            Some(Answer::Block { bytes }) => {
                let mut block = Vec::new();
                self.bytes(bytes, &mut block)?;
                Ok(Some(block))
            }
            Some(Answer::Missing) => Ok(None),
            answer => Err(unexpected(answer)),
        }
    }

    /// Answers [`Request::Get`].
    pub fn give(&mut self, block: Option<&[u8]>) -> Result<(), PeerError> {
        match block {
            None => self.answer(&Answer::Missing),
            Some(bytes) => {
                let length = bytes.len() as u32;
                self.say(&Answer::Block { bytes: length }, bytes)
            }
        }
    }

    /// Waits for the next request. Returns `None` if the other side has ended the connection.
    pub fn request(&mut self) -> Result<Option<Request>, PeerError> {
        self.receive()
    }

    pub fn answer(&mut self, answer: &Answer) -> Result<(), PeerError> {
        self.say(answer, &[])
    }

    /// Waits for the bytes that follow a request. The caller reuses `buffer`.
    pub fn bytes<'b>(
        &mut self,
        count: u32,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], PeerError> {
        if count > MAX_BLOCK {
            return Err(CodecError::TooLong(count as usize).into());
        }
        if !self.hear(count as usize)? {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        buffer.clear();
        buffer.extend_from_slice(self.take(count as usize));
        Ok(buffer)
    }

    fn receive<M: Decode<()>>(&mut self) -> Result<Option<M>, PeerError> {
        if !self.hear(4)? {
            return Ok(None);
        }
        let mut length = [0; 4];
        length.copy_from_slice(self.take(4));
        let length = u32::from_le_bytes(length) as usize;
        // Requests are short: a sender of a long one is not a peer.
        if length > MAX_FRAME.min(64 << 10) {
            return Err(CodecError::TooLong(length).into());
        }
        if !self.hear(length)? {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Some(codec::decode(self.take(length))?))
    }

    /// Waits until `count` bytes can be taken. Returns false if the other side has ended the connection before the first of them.
    fn hear(&mut self, count: usize) -> Result<bool, PeerError> {
        if self.taken > 0 {
            self.opened.drain(..self.taken);
            self.taken = 0;
        }
        while self.opened.len() < count {
            let mut length = [0; LENGTH_BYTES];
            match self.stream.read_exact(&mut length) {
                Err(error)
                    if error.kind() == io::ErrorKind::UnexpectedEof && self.opened.is_empty() =>
                {
                    return Ok(false);
                }
                other => other?,
            }
            self.record.resize(sealed::record_bytes(length)?, 0);
            self.stream.read_exact(&mut self.record)?;
            self.opener.record(&self.record, &mut self.opened)?;
        }
        Ok(true)
    }

    /// Takes bytes that have arrived.
    fn take(&mut self, count: usize) -> &[u8] {
        let from = self.taken;
        self.taken += count;
        &self.opened[from..self.taken]
    }
}

fn refused(error: GreetingError, address: &str) -> PeerError {
    match error {
        GreetingError::Broken(source) => source.into(),
        GreetingError::Handshake(source) => PeerError::Handshake {
            address: address.to_owned(),
            source,
        },
    }
}

/// The error for an answer that does not fit the question, or for a missing one.
fn unexpected(answer: Option<Answer>) -> PeerError {
    match answer {
        None => io::Error::from(io::ErrorKind::UnexpectedEof).into(),
        Some(answer) => {
            PeerError::Refused(format!("the peer sent an unexpected answer: {answer:?}"))
        }
    }
}

/// Opens the listener for an agent's peers. Returns it with the address to tell them.
pub fn listen(reachable_at: std::net::IpAddr) -> io::Result<(TcpListener, String)> {
    let listener = lasting::listen(SocketAddr::new(reachable_at, 0))?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lasting::Silence;
    use std::net::{IpAddr, Ipv4Addr, TcpStream};
    use std::thread;

    const SHORT: Duration = Duration::from_secs(5);

    fn accept(listener: &TcpListener, key: &Key) -> Result<Peer, PeerError> {
        let stream = Lasting::accept(listener, Silence::default()).unwrap();
        let channel = Peer::shake_hands(&stream, key, SHORT)?;
        Peer::speaking(stream, channel)
    }

    #[test]
    fn blocks_arrive_whole_and_are_acknowledged() {
        let key = Key::random().unwrap();
        let (listener, address) = listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let servers_key = key.clone();
        let server = thread::spawn(move || {
            let mut peer = accept(&listener, &servers_key).unwrap();
            let (mut buffer, mut got) = (vec![], vec![]);
            while let Some(request) = peer.request().unwrap() {
                match request {
                    Request::Put { bytes, offset, .. } => {
                        got.push((offset, peer.bytes(bytes, &mut buffer).unwrap().to_vec()));
                    }
                    Request::Probe { .. } => panic!("no probe was sent"),
                    Request::Close => peer.answer(&Answer::Kept { bytes: 5 }).unwrap(),
                    Request::Get { rank, block } => {
                        let held = (rank, block) == (Rank(2), 7);
                        peer.give(held.then_some(&b"held"[..])).unwrap();
                    }
                }
            }
            got
        });
        let mut peer = Peer::open(&address, &key.into(), SHORT).unwrap();
        for (offset, bytes) in [(0, &b"abc"[..]), (3, &b"de"[..])] {
            let put = Request::Put {
                attempt: 7,
                epoch: Epoch(1),
                rank: Rank(2),
                offset,
                bytes: bytes.len() as u32,
                copy: false,
            };
            peer.send(&put, bytes).unwrap();
        }
        assert_eq!(peer.close().unwrap(), 5);
        assert_eq!(peer.get(Rank(2), 7).unwrap(), Some(b"held".to_vec()));
        assert_eq!(peer.get(Rank(2), 8).unwrap(), None);
        drop(peer);
        assert_eq!(
            server.join().unwrap(),
            [(0, b"abc".to_vec()), (3, b"de".to_vec())]
        );
    }

    #[test]
    fn whoever_has_another_key_or_none_is_turned_away() {
        let key = Key::random().unwrap();
        let (listener, address) = listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let server = thread::spawn(move || {
            (0..2)
                .map(|_| accept(&listener, &key).is_err())
                .collect::<Vec<_>>()
        });
        let other = Terms::from(Key::random().unwrap());
        assert!(matches!(
            Peer::open(&address, &other, SHORT),
            Err(PeerError::Handshake {
                source: HandshakeError::WrongKey,
                ..
            })
        ));
        let mut stranger = TcpStream::connect(&address).unwrap();
        stranger.write_all(&[b'G'; 200]).unwrap();
        assert_eq!(server.join().unwrap(), [true, true]);
    }

    #[test]
    fn a_peer_that_is_not_there_is_named() {
        let (listener, address) = listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        drop(listener);
        let error = Peer::open(&address, &Terms::from(Key::random().unwrap()), SHORT).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot reach the peer at {address}"))
        );
    }
}
