//! The handshake at the beginning of a connection. Each side proves that it holds the job's key without sending it, both settle on a version, and both derive
//! the keys of this connection alone.
//!
//! It is Noise's `NNpsk0` (The Noise Protocol Framework, revision 34, section 9) with the job's key as the pre-shared one. The bytes sent in clear before it
//! are Noise's prologue, so a change on the way is detected.
//!
//! ```text
//!  client ──▶ server   ClientHello (61 bytes): magic 8, oldest 2, newest 2, role 1, Noise's first message 48
//!  client ◀── server   ServerHello (55 bytes): verdict 1 (1 welcome, 0 not), Noise's second message 54, in which
//!                                              version 3 (0: none in common), oldest 3, newest 3
//!  client ──▶ server   proof (16 bytes):       an empty record: the client has derived the keys too
//! ```
//!
//! An observer can replay the first message, but not the proof, since the server's part of the keys is new in every connection. All sizes are fixed, and no
//! bytes of a stranger are decoded.

use snow::{Builder, HandshakeState};

use crate::key::Key;
use crate::sealed::{Channel, TAG_BYTES};

const MAGIC: [u8; 8] = *b"STILLPT\x02";
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// Versions of the messages that this build speaks.
pub const OLDEST: u16 = 3;
pub const NEWEST: u16 = 3;

/// The size of a Curve25519 key.
const PUBLIC_BYTES: usize = 32;
const PROLOGUE_BYTES: usize = 13;
const VERSION_BYTES: usize = 6;
pub const CLIENT_HELLO_BYTES: usize = PROLOGUE_BYTES + PUBLIC_BYTES + TAG_BYTES;
pub const SERVER_HELLO_BYTES: usize = 1 + PUBLIC_BYTES + VERSION_BYTES + TAG_BYTES;
pub const PROOF_BYTES: usize = TAG_BYTES;
/// The answer to a client that does not hold the key.
pub const REFUSAL: [u8; SERVER_HELLO_BYTES] = [0; SERVER_HELLO_BYTES];

/// A client's role, which decides the messages that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    Agent = 1,
    Command = 2,
    /// Another rank's agent; the coordinator does not serve this role.
    Peer = 3,
}

/// The reason why two sides do not agree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HandshakeError {
    #[error(
        "the other side does not speak Stillpoint's protocol, or runs another release: use the same release of \
         Stillpoint on both sides"
    )]
    NotOurs,
    #[error(
        "the other side speaks versions {oldest} to {newest} of the protocol, this build speaks {OLDEST} to {NEWEST}: \
         use the same release of Stillpoint on both sides"
    )]
    Version { oldest: u16, newest: u16 },
    #[error("the other side does not have this job's key")]
    WrongKey,
    #[error("cannot encrypt the connection: {0}")]
    Cipher(String),
}

impl From<snow::Error> for HandshakeError {
    fn from(error: snow::Error) -> HandshakeError {
        match error {
            snow::Error::Decrypt | snow::Error::Dh => HandshakeError::WrongKey,
            other => HandshakeError::Cipher(other.to_string()),
        }
    }
}

fn noise<'a>(key: &'a Key, prologue: &'a [u8]) -> Result<Builder<'a>, HandshakeError> {
    let pattern = PATTERN.parse()?;
    Ok(Builder::new(pattern).prologue(prologue)?.psk(0, &key.0)?)
}

/// A client, from its first bytes on.
pub struct Client {
    hello: [u8; CLIENT_HELLO_BYTES],
    noise: HandshakeState,
}

impl Client {
    /// # Errors
    /// [`HandshakeError::Cipher`] if the system gives no random numbers.
    pub fn new(key: &Key, role: Role) -> Result<Client, HandshakeError> {
        let mut hello = [0; CLIENT_HELLO_BYTES];
        hello[..8].copy_from_slice(&MAGIC);
        hello[8..10].copy_from_slice(&OLDEST.to_le_bytes());
        hello[10..12].copy_from_slice(&NEWEST.to_le_bytes());
        hello[12] = role as u8;
        Client::saying(key, hello)
    }

    /// A client that sends these bytes before Noise's first message.
    fn saying(key: &Key, mut hello: [u8; CLIENT_HELLO_BYTES]) -> Result<Client, HandshakeError> {
        let (prologue, message) = hello.split_at_mut(PROLOGUE_BYTES);
        let mut noise = noise(key, prologue)?.build_initiator()?;
        noise.write_message(&[], message)?;
        Ok(Client { hello, noise })
    }

    pub fn hello(&self) -> &[u8; CLIENT_HELLO_BYTES] {
        &self.hello
    }

    /// Checks the server's answer. Returns the version to speak, the proof to send, and the channel for the messages that follow.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub fn answer(
        mut self,
        server: &[u8; SERVER_HELLO_BYTES],
    ) -> Result<(u16, [u8; PROOF_BYTES], Channel), HandshakeError> {
        let (verdict, message) = server.split_at(1);
        match verdict {
            [0] => return Err(HandshakeError::WrongKey),
            [1] => {}
            _ => return Err(HandshakeError::NotOurs),
        }
        let mut versions = [0; VERSION_BYTES];
        self.noise.read_message(message, &mut versions)?;
        let [version, oldest, newest] = words(versions);
        if !(OLDEST..=NEWEST).contains(&version) {
            return Err(HandshakeError::Version { oldest, newest });
        }
        let mut channel = Channel::new(self.noise.into_stateless_transport_mode()?);
        let proof = channel.prove().map_err(cipher)?;
        Ok((version, proof, channel))
    }
}

/// A server that has read a client's hello.
pub struct Server {
    hello: [u8; SERVER_HELLO_BYTES],
    noise: HandshakeState,
    role: Role,
    version: u16,
    /// The versions that the client speaks.
    spoken: [u16; 2],
}

impl Server {
    /// # Errors
    /// See [`HandshakeError`]. The caller answers with [`REFUSAL`], or not at all.
    pub fn new(key: &Key, client: &[u8; CLIENT_HELLO_BYTES]) -> Result<Server, HandshakeError> {
        let (prologue, message) = client.split_at(PROLOGUE_BYTES);
        let role = match prologue[12] {
            _ if prologue[..8] != MAGIC => return Err(HandshakeError::NotOurs),
            1 => Role::Agent,
            2 => Role::Command,
            3 => Role::Peer,
            _ => return Err(HandshakeError::NotOurs),
        };
        let mut noise = noise(key, prologue)?.build_responder()?;
        noise.read_message(message, &mut [])?;
        let oldest = u16::from_le_bytes([prologue[8], prologue[9]]);
        let newest = u16::from_le_bytes([prologue[10], prologue[11]]);
        let version = if oldest <= NEWEST && newest >= OLDEST {
            newest.min(NEWEST)
        } else {
            0
        };
        let mut versions = [0; VERSION_BYTES];
        for (to, word) in versions.chunks_exact_mut(2).zip([version, OLDEST, NEWEST]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let mut hello = [0; SERVER_HELLO_BYTES];
        hello[0] = 1;
        noise.write_message(&versions, &mut hello[1..])?;
        Ok(Server {
            hello,
            noise,
            role,
            version,
            spoken: [oldest, newest],
        })
    }

    pub fn hello(&self) -> &[u8; SERVER_HELLO_BYTES] {
        &self.hello
    }

    /// Checks the client's proof. Returns the client's role, the version to speak, and the channel for the messages that follow.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub fn check(self, proof: &[u8; PROOF_BYTES]) -> Result<(Role, u16, Channel), HandshakeError> {
        let mut channel = Channel::new(self.noise.into_stateless_transport_mode()?);
        channel.check(proof).map_err(|_| HandshakeError::WrongKey)?;
        if self.version == 0 {
            let [oldest, newest] = self.spoken;
            return Err(HandshakeError::Version { oldest, newest });
        }
        Ok((self.role, self.version, channel))
    }
}

fn cipher(error: impl std::fmt::Display) -> HandshakeError {
    HandshakeError::Cipher(error.to_string())
}

fn words(bytes: [u8; VERSION_BYTES]) -> [u16; 3] {
    [0, 2, 4].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> (Key, Key) {
        (Key::random().unwrap(), Key::random().unwrap())
    }

    #[test]
    fn both_sides_come_together_with_one_key() {
        let (key, _) = keys();
        for role in [Role::Agent, Role::Command, Role::Peer] {
            let client = Client::new(&key, role).unwrap();
            let server = Server::new(&key, client.hello()).unwrap();
            let (version, proof, _) = client.answer(server.hello()).unwrap();
            let (known, spoken, _) = server.check(&proof).unwrap();
            assert_eq!((known, spoken), (role, version));
        }
    }

    #[test]
    fn neither_side_accepts_another_key() {
        let (key, other) = keys();
        let client = Client::new(&other, Role::Agent).unwrap();
        let refused = Server::new(&key, client.hello()).map(drop);
        assert_eq!(refused, Err(HandshakeError::WrongKey));
        let refused = client.answer(&REFUSAL).map(drop);
        assert_eq!(refused, Err(HandshakeError::WrongKey));
        // A server with another key cannot answer correctly.
        let client = Client::new(&key, Role::Agent).unwrap();
        let mut forged = REFUSAL;
        forged[0] = 1;
        assert_eq!(
            client.answer(&forged).map(drop),
            Err(HandshakeError::WrongKey)
        );
    }

    #[test]
    fn nothing_of_a_handshake_can_be_used_again_or_reflected() {
        let (key, _) = keys();
        let client = Client::new(&key, Role::Agent).unwrap();
        let hello = *client.hello();
        let first = Server::new(&key, &hello).unwrap();
        let (_, proof, _) = client.answer(first.hello()).unwrap();
        // An eavesdropper replays the client's messages to a second server.
        let second = Server::new(&key, &hello).unwrap();
        assert_ne!(first.hello(), second.hello());
        assert_eq!(
            second.check(&proof).map(drop),
            Err(HandshakeError::WrongKey)
        );
        let client = Client::new(&key, Role::Agent).unwrap();
        assert_eq!(
            client.answer(first.hello()).map(drop),
            Err(HandshakeError::WrongKey)
        );
    }

    #[test]
    fn a_stranger_is_told_apart_from_another_version() {
        let (key, _) = keys();
        assert!(matches!(
            Server::new(&key, &[b'G'; CLIENT_HELLO_BYTES]),
            Err(HandshakeError::NotOurs)
        ));
        let mut newer = *Client::new(&key, Role::Command).unwrap().hello();
        newer[8..12].copy_from_slice(&[9, 0, 12, 0]);
        let client = Client::saying(&key, newer).unwrap();
        let server = Server::new(&key, client.hello()).unwrap();
        assert!(matches!(
            client.answer(server.hello()),
            Err(HandshakeError::Version {
                oldest: OLDEST,
                newest: NEWEST
            })
        ));
    }

    #[test]
    fn what_is_said_in_clear_cannot_be_changed_on_the_way() {
        let (key, _) = keys();
        let client = Client::new(&key, Role::Command).unwrap();
        for (at, value) in [(12, Role::Agent as u8), (10, 7)] {
            let mut changed = *client.hello();
            changed[at] = value;
            let refused = Server::new(&key, &changed).map(drop);
            assert_eq!(refused, Err(HandshakeError::WrongKey), "byte {at}");
        }
    }
}
