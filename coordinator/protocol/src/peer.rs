//! From node to node: blocks of images, on their way to another node's fast tier, and before a restart back from there.
//!
//! The same handshake as everywhere, with the role [`Role::Peer`], then requests as frames. The bytes of a block follow
//! its [`Request::Put`], or the answer to its [`Request::Get`], as they are. [`Request::Put`] is not answered but with
//! [`Request::Close`], so that blocks follow each other without a pause.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::codec::{self, CodecError, Decode, Encode, MAX_FRAME};
use crate::handshake::{
    self, CLIENT_HELLO_BYTES, HandshakeError, PROOF_BYTES, Role, SERVER_HELLO_BYTES,
};
use crate::key::Key;

/// Longest block.
pub const MAX_BLOCK: u32 = 4 << 20;
/// A peer that does not read, or does not write, for so long is gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a stranger may take to show the key.
const STRANGER_PATIENCE: Duration = Duration::from_secs(5);

/// What the sender wants.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Request {
    /// A block of a rank's image; `bytes` bytes follow.
    Put {
        /// The attempt at the epoch: what was sent for an earlier one is not kept.
        attempt: u64,
        epoch: u64,
        rank: u32,
        offset: u64,
        bytes: u32,
        /// A second copy: it is not flushed while the first one is there.
        copy: bool,
    },
    /// A block that only measures the way.
    Probe { bytes: u32 },
    /// All is sent: say whether all is kept.
    Close,
    /// A block of a rank's image of the epoch that is to be restarted, by its number in the image's table.
    Get { rank: u32, block: u32 },
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
    /// It is not here (any more).
    Missing,
}

/// Why two agents do not come together, or part.
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
    #[error("{0}")]
    Refused(String),
}

/// A connection between agents that know each other.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
}

impl Peer {
    /// Connects to the agent at `address` ("host:port").
    pub fn open(address: &str, key: &Key, patience: Duration) -> Result<Peer, PeerError> {
        let unreachable = |source| PeerError::Unreachable {
            address: address.to_owned(),
            source,
        };
        let resolved = address
            .to_socket_addrs()
            .map_err(unreachable)?
            .next()
            .ok_or_else(|| unreachable(io::ErrorKind::NotFound.into()))?;
        let mut stream = TcpStream::connect_timeout(&resolved, patience).map_err(unreachable)?;
        let failed = |source| PeerError::Handshake {
            address: address.to_owned(),
            source,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let client = handshake::Client::new(Role::Peer)?;
        stream.write_all(client.hello())?;
        let mut hello = [0; SERVER_HELLO_BYTES];
        stream.read_exact(&mut hello)?;
        let (_version, proof) = client.answer(key, &hello).map_err(failed)?;
        stream.write_all(&proof)?;
        let mut verdict = [0; 1];
        stream.read_exact(&mut verdict)?;
        if verdict != [1] {
            return Err(failed(HandshakeError::WrongKey));
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Peer { stream })
    }

    /// Takes a connection in; an error for whoever does not belong here.
    pub fn accept(mut stream: TcpStream, key: &Key) -> Result<Peer, PeerError> {
        let failed = |source| PeerError::Handshake {
            address: "another agent".to_owned(),
            source,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STRANGER_PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut hello = [0; CLIENT_HELLO_BYTES];
        stream.read_exact(&mut hello)?;
        let server = handshake::Server::new(key, hello).map_err(failed)?;
        stream.write_all(server.hello())?;
        let mut proof = [0; PROOF_BYTES];
        stream.read_exact(&mut proof)?;
        let known = server.check(key, &proof);
        let welcome = matches!(known, Ok((Role::Peer, _)));
        stream.write_all(&[u8::from(welcome)])?;
        match known {
            Ok((Role::Peer, _)) => {}
            Ok(_) => return Err(failed(HandshakeError::NotOurs)),
            Err(error) => return Err(failed(error)),
        }
        // A peer may hold its connection for as long as the job runs.
        stream.set_read_timeout(None)?;
        Ok(Peer { stream })
    }

    /// Sends a request and, with [`Request::Put`] and [`Request::Probe`], the bytes that follow it.
    pub fn send(&mut self, request: &Request, bytes: &[u8]) -> Result<(), PeerError> {
        let frame = codec::encode(request)?;
        self.stream.write_all(&frame)?;
        self.stream.write_all(bytes)?;
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
    pub fn get(&mut self, rank: u32, block: u32) -> Result<Option<Vec<u8>>, PeerError> {
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
                self.answer(&Answer::Block {
                    bytes: bytes.len() as u32,
                })?;
                self.stream.write_all(bytes)?;
                Ok(())
            }
        }
    }

    /// The next request; `None` when there will be none.
    pub fn request(&mut self) -> Result<Option<Request>, PeerError> {
        self.receive()
    }

    pub fn answer(&mut self, answer: &Answer) -> Result<(), PeerError> {
        let frame = codec::encode(answer)?;
        self.stream.write_all(&frame)?;
        Ok(())
    }

    /// The bytes that follow a request; `buffer` is used again and again.
    pub fn bytes<'b>(
        &mut self,
        count: u32,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], PeerError> {
        if count > MAX_BLOCK {
            return Err(CodecError::TooLong(count as usize).into());
        }
        buffer.resize(count as usize, 0);
        self.stream.read_exact(buffer)?;
        Ok(buffer)
    }

    fn receive<M: Decode<()>>(&mut self) -> Result<Option<M>, PeerError> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let length = u32::from_le_bytes(length) as usize;
        // Requests are short: whoever sends a long one is no peer.
        if length > MAX_FRAME.min(64 << 10) {
            return Err(CodecError::TooLong(length).into());
        }
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok(Some(codec::decode(&payload)?))
    }
}

/// An answer to another question, or none.
fn unexpected(answer: Option<Answer>) -> PeerError {
    match answer {
        None => io::Error::from(io::ErrorKind::UnexpectedEof).into(),
        Some(answer) => PeerError::Refused(format!("it answers {answer:?}")),
    }
}

/// Where an agent takes peers in, and the address that it tells them.
pub fn listen(reachable_at: std::net::IpAddr) -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((reachable_at, 0))?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use std::thread;

    const SHORT: Duration = Duration::from_secs(5);

    #[test]
    fn blocks_arrive_whole_and_are_acknowledged() {
        let key = Key::random().unwrap();
        let (listener, address) = listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let servers_key = key.clone();
        let server = thread::spawn(move || {
            let mut peer = Peer::accept(listener.accept().unwrap().0, &servers_key).unwrap();
            let (mut buffer, mut got) = (vec![], vec![]);
            while let Some(request) = peer.request().unwrap() {
                match request {
                    Request::Put { bytes, offset, .. } => {
                        got.push((offset, peer.bytes(bytes, &mut buffer).unwrap().to_vec()));
                    }
                    Request::Probe { .. } => panic!("no probe was sent"),
                    Request::Close => peer.answer(&Answer::Kept { bytes: 5 }).unwrap(),
                    Request::Get { rank, block } => {
                        let held = (rank, block) == (2, 7);
                        peer.give(held.then_some(&b"held"[..])).unwrap();
                    }
                }
            }
            got
        });
        let mut peer = Peer::open(&address, &key, SHORT).unwrap();
        for (offset, bytes) in [(0, &b"abc"[..]), (3, &b"de"[..])] {
            let put = Request::Put {
                attempt: 7,
                epoch: 1,
                rank: 2,
                offset,
                bytes: bytes.len() as u32,
                copy: false,
            };
            peer.send(&put, bytes).unwrap();
        }
        assert_eq!(peer.close().unwrap(), 5);
        assert_eq!(peer.get(2, 7).unwrap(), Some(b"held".to_vec()));
        assert_eq!(peer.get(2, 8).unwrap(), None);
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
                .map(|_| Peer::accept(listener.accept().unwrap().0, &key).is_err())
                .collect::<Vec<_>>()
        });
        let other = Key::random().unwrap();
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
        let error = Peer::open(&address, &Key::random().unwrap(), SHORT).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot reach the peer at {address}"))
        );
    }
}
