//! What happens on a connection before the first message: each side shows that it holds the job's key
//! without sending it, and both settle on a version. Fixed sizes, no allocation, nothing decoded from
//! a stranger's bytes.
//!
//! ```text
//!  client ──▶ server   ClientHello (45 bytes): magic 8, oldest 2, newest 2, role 1, nonce 32
//!  client ◀── server   ServerHello (74 bytes): magic 8, version 2 (0: none in common), nonce 32,
//!                                              HMAC-SHA256(key, "server" | both hellos so far) 32
//!  client ──▶ server   proof (32 bytes):       HMAC-SHA256(key, "client" | both hellos, without the MAC)
//!  client ◀── server   verdict (1 byte):       1 welcome, 0 not
//! ```
//!
//! Both nonces are in both codes, so that neither can be replayed, and the two directions differ, so that
//! a server cannot be made to answer for a client. Codes are compared in constant time.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::key::{Key, random_bytes};

const MAGIC: [u8; 8] = *b"STILLPT\x01";

/// Versions of the messages that this build speaks.
pub const OLDEST: u16 = 1;
pub const NEWEST: u16 = 1;

pub const CLIENT_HELLO_BYTES: usize = 45;
pub const SERVER_HELLO_BYTES: usize = 74;
pub const PROOF_BYTES: usize = 32;

/// What a client is, and so which messages it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    Agent = 1,
    Command = 2,
    /// Another rank's agent; the coordinator serves none.
    Peer = 3,
}

/// Why two sides do not come together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HandshakeError {
    #[error("the other side does not speak Stillpoint's protocol")]
    NotOurs,
    #[error(
        "the other side speaks versions {oldest} to {newest} of the protocol, this build {OLDEST} to {NEWEST}: use the same release of Stillpoint on both sides"
    )]
    Version { oldest: u16, newest: u16 },
    #[error("the other side does not hold this job's key")]
    WrongKey,
}

/// A client's first bytes.
pub struct Client {
    hello: [u8; CLIENT_HELLO_BYTES],
}

impl Client {
    pub fn new(role: Role) -> std::io::Result<Client> {
        let mut hello = [0; CLIENT_HELLO_BYTES];
        hello[..8].copy_from_slice(&MAGIC);
        hello[8..10].copy_from_slice(&OLDEST.to_le_bytes());
        hello[10..12].copy_from_slice(&NEWEST.to_le_bytes());
        hello[12] = role as u8;
        hello[13..].copy_from_slice(&random_bytes()?);
        Ok(Client { hello })
    }

    pub fn hello(&self) -> &[u8; CLIENT_HELLO_BYTES] {
        &self.hello
    }

    /// Checks the server's answer; the version to speak and the proof to send.
    pub fn answer(
        &self,
        key: &Key,
        server: &[u8; SERVER_HELLO_BYTES],
    ) -> Result<(u16, [u8; PROOF_BYTES]), HandshakeError> {
        let (spoken, code) = server.split_at(SERVER_HELLO_BYTES - PROOF_BYTES);
        if spoken[..8] != MAGIC {
            return Err(HandshakeError::NotOurs);
        }
        let version = u16::from_le_bytes([spoken[8], spoken[9]]);
        mac(key, b"server", &self.hello, spoken)
            .verify_slice(code)
            .map_err(|_| HandshakeError::WrongKey)?;
        if !(OLDEST..=NEWEST).contains(&version) {
            return Err(HandshakeError::Version {
                oldest: version,
                newest: version,
            });
        }
        let proof = mac(key, b"client", &self.hello, spoken);
        Ok((version, proof.finalize().into_bytes().into()))
    }
}

/// A server that has read a client's hello.
pub struct Server {
    client: [u8; CLIENT_HELLO_BYTES],
    hello: [u8; SERVER_HELLO_BYTES],
    role: Role,
    version: u16,
}

impl Server {
    pub fn new(key: &Key, client: [u8; CLIENT_HELLO_BYTES]) -> Result<Server, HandshakeError> {
        let role = match client[12] {
            _ if client[..8] != MAGIC => return Err(HandshakeError::NotOurs),
            1 => Role::Agent,
            2 => Role::Command,
            3 => Role::Peer,
            _ => return Err(HandshakeError::NotOurs),
        };
        let oldest = u16::from_le_bytes([client[8], client[9]]);
        let newest = u16::from_le_bytes([client[10], client[11]]);
        let version = if oldest <= NEWEST && newest >= OLDEST {
            newest.min(NEWEST)
        } else {
            0
        };
        let nonce = random_bytes().map_err(|_| HandshakeError::NotOurs)?;
        let mut hello = [0; SERVER_HELLO_BYTES];
        hello[..8].copy_from_slice(&MAGIC);
        hello[8..10].copy_from_slice(&version.to_le_bytes());
        hello[10..42].copy_from_slice(&nonce);
        let code = mac(key, b"server", &client, &hello[..42]).finalize();
        hello[42..].copy_from_slice(&code.into_bytes());
        Ok(Server {
            client,
            hello,
            role,
            version,
        })
    }

    pub fn hello(&self) -> &[u8; SERVER_HELLO_BYTES] {
        &self.hello
    }

    /// Checks the client's proof; what it is, and the version to speak.
    pub fn check(
        &self,
        key: &Key,
        proof: &[u8; PROOF_BYTES],
    ) -> Result<(Role, u16), HandshakeError> {
        mac(key, b"client", &self.client, &self.hello[..42])
            .verify_slice(proof)
            .map_err(|_| HandshakeError::WrongKey)?;
        if self.version == 0 {
            return Err(HandshakeError::Version {
                oldest: u16::from_le_bytes([self.client[8], self.client[9]]),
                newest: u16::from_le_bytes([self.client[10], self.client[11]]),
            });
        }
        Ok((self.role, self.version))
    }
}

fn mac(key: &Key, direction: &[u8], client: &[u8], server: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length; this cannot fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).unwrap_or_else(|_| unreachable!());
    mac.update(direction);
    mac.update(client);
    mac.update(server);
    mac
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
            let client = Client::new(role).unwrap();
            let server = Server::new(&key, *client.hello()).unwrap();
            let (version, proof) = client.answer(&key, server.hello()).unwrap();
            assert_eq!(server.check(&key, &proof), Ok((role, version)));
        }
    }

    #[test]
    fn neither_side_accepts_another_key() {
        let (key, other) = keys();
        let client = Client::new(Role::Agent).unwrap();
        let server = Server::new(&key, *client.hello()).unwrap();
        assert_eq!(
            client.answer(&other, server.hello()),
            Err(HandshakeError::WrongKey)
        );
        // A client that does not check the server still cannot prove itself.
        let forged = mac(&other, b"client", client.hello(), &server.hello()[..42]);
        let forged = forged.finalize().into_bytes().into();
        assert_eq!(server.check(&key, &forged), Err(HandshakeError::WrongKey));
    }

    #[test]
    fn a_proof_cannot_be_replayed_or_reflected() {
        let (key, _) = keys();
        let client = Client::new(Role::Agent).unwrap();
        let first = Server::new(&key, *client.hello()).unwrap();
        let (_, proof) = client.answer(&key, first.hello()).unwrap();
        let second = Server::new(&key, *client.hello()).unwrap();
        assert_eq!(second.check(&key, &proof), Err(HandshakeError::WrongKey));
        let reflected = second.hello()[42..].try_into().unwrap();
        assert_eq!(second.check(&key, reflected), Err(HandshakeError::WrongKey));
    }

    #[test]
    fn a_stranger_is_told_apart_from_another_version() {
        let (key, _) = keys();
        assert!(matches!(
            Server::new(&key, [b'G'; CLIENT_HELLO_BYTES]),
            Err(HandshakeError::NotOurs)
        ));
        let mut newer = *Client::new(Role::Command).unwrap().hello();
        newer[8..12].copy_from_slice(&[9, 0, 12, 0]);
        let server = Server::new(&key, newer).unwrap();
        let client = Client { hello: newer };
        assert!(matches!(
            client.answer(&key, server.hello()),
            Err(HandshakeError::Version { .. })
        ));
    }

    #[test]
    fn the_role_cannot_be_changed_on_the_way() {
        let (key, _) = keys();
        let client = Client::new(Role::Command).unwrap();
        let mut changed = *client.hello();
        changed[12] = Role::Agent as u8;
        let server = Server::new(&key, changed).unwrap();
        assert_eq!(
            client.answer(&key, server.hello()),
            Err(HandshakeError::WrongKey)
        );
    }
}
