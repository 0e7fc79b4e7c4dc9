//! The records of a connection after the handshake. Each is encrypted and authenticated under keys that only the two sides have derived, and numbered. So a
//! change, loss, repetition or move of a record is detected.
//!
//! ```text
//!  length 2 (little-endian; of what follows) | encrypted bytes, up to 65,519 | authentication tag 16
//! ```
//! A record's number is never sent: both sides count. Messages and blocks are one stream of bytes; the boundaries of records mean nothing.
//! nothing.

use std::sync::Arc;

use snow::StatelessTransportState;

/// The size of a record's authentication tag.
pub const TAG_BYTES: usize = 16;
/// The longest record, without its length.
pub const MAX_RECORD: usize = 65_535;
/// The size of a record's length.
pub const LENGTH_BYTES: usize = 2;
const MAX_PAYLOAD: usize = MAX_RECORD - TAG_BYTES;

/// The reason why received bytes are not the next ones of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("the message failed authentication: it was altered or replayed on the network")]
    NotAuthentic,
    #[error("the record's length ({0} bytes) is not valid")]
    Length(usize),
}

/// Both directions of a connection.
pub struct Channel {
    sealer: Sealer,
    opener: Opener,
}

impl Channel {
    pub(crate) fn new(keys: StatelessTransportState) -> Channel {
        let keys = Arc::new(keys);
        Channel {
            sealer: Sealer {
                keys: Arc::clone(&keys),
                next: 0,
            },
            opener: Opener {
                keys,
                next: 0,
                arrived: Vec::new(),
            },
        }
    }

    /// Makes the proof: an empty record without its length.
    pub(crate) fn prove(&mut self) -> Result<[u8; TAG_BYTES], SealError> {
        let mut proof = [0; TAG_BYTES];
        self.sealer.record(&[], &mut proof)?;
        Ok(proof)
    }

    pub(crate) fn check(&mut self, proof: &[u8; TAG_BYTES]) -> Result<(), SealError> {
        self.opener.record(proof, &mut Vec::new())
    }

    pub fn split(self) -> (Sealer, Opener) {
        (self.sealer, self.opener)
    }
}

/// Makes records.
pub struct Sealer {
    keys: Arc<StatelessTransportState>,
    next: u64,
}

impl Sealer {
    /// Appends the records for `bytes` to `to`.
    ///
    /// # Errors
    /// Bytes of any contents cause no error.
    pub fn seal(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> Result<(), SealError> {
        for payload in bytes.chunks(MAX_PAYLOAD) {
            let length = payload.len() + TAG_BYTES;
            to.extend_from_slice(&(length as u16).to_le_bytes());
            let at = to.len();
            to.resize(at + length, 0);
            self.record(payload, &mut to[at..])?;
        }
        Ok(())
    }

    fn record(&mut self, payload: &[u8], to: &mut [u8]) -> Result<(), SealError> {
        self.keys
            .write_message(self.next, payload, to)
            .map_err(|_| SealError::Length(payload.len()))?;
        self.next += 1;
        Ok(())
    }
}

/// Takes records apart.
pub struct Opener {
    keys: Arc<StatelessTransportState>,
    next: u64,
    /// The beginning of an incomplete record.
    arrived: Vec<u8>,
}

impl Opener {
    /// Opens bytes that have arrived, in pieces of any size, and appends the sent bytes to `to`. After an error the connection is useless.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn open(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> Result<(), SealError> {
        self.arrived.extend_from_slice(bytes);
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut used = 0;
        while let Some((length, rest)) = arrived[used..].split_first_chunk::<LENGTH_BYTES>() {
            let Some(record) = rest.get(..record_bytes(*length)?) else {
                break;
            };
            self.record(record, to)?;
            used += LENGTH_BYTES + record.len();
        }
        arrived.drain(..used);
        self.arrived = arrived;
        Ok(())
    }

    /// Opens a whole record, and appends its contents.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn record(&mut self, record: &[u8], to: &mut Vec<u8>) -> Result<(), SealError> {
        let at = to.len();
        let payload = record.len().checked_sub(TAG_BYTES);
        let payload = payload.ok_or(SealError::Length(record.len()))?;
        to.resize(at + payload, 0);
        let opened = self.keys.read_message(self.next, record, &mut to[at..]);
        if opened.is_err() {
            to.truncate(at);
            return Err(SealError::NotAuthentic);
        }
        self.next += 1;
        Ok(())
    }
}

/// Returns the number of bytes that follow a record's length.
///
/// # Errors
/// [`SealError::Length`] if there is no room for the tag.
pub fn record_bytes(length: [u8; LENGTH_BYTES]) -> Result<usize, SealError> {
    let bytes = usize::from(u16::from_le_bytes(length));
    if bytes < TAG_BYTES {
        return Err(SealError::Length(bytes));
    }
    Ok(bytes)
}

// Debug output never shows the keys.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer(record {})", self.next)
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opener(record {})", self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::{Client, Role, Server};
    use crate::key::Key;
    use proptest::prelude::*;

    fn channels() -> (Channel, Channel) {
        let key = Key::random().unwrap();
        let client = Client::new(&key, Role::Agent).unwrap();
        let server = Server::new(&key, client.hello()).unwrap();
        let (_, proof, here) = client.answer(server.hello()).unwrap();
        let (_, _, there) = server.check(&proof).unwrap();
        (here, there)
    }

    /// Records with the words "one", "two", "three", and an opener for them.
    fn three() -> ([Vec<u8>; 3], Opener) {
        let (here, there) = channels();
        let (mut sealer, opener) = (here.split().0, there.split().1);
        let records = ["one", "two", "three"].map(|word| {
            let mut record = vec![];
            sealer.seal(word.as_bytes(), &mut record).unwrap();
            record
        });
        (records, opener)
    }

    #[test]
    fn both_directions_carry_what_is_said_and_show_none_of_it() {
        let (here, there) = channels();
        let ((mut say, mut hear), (mut answer, mut listen)) = (here.split(), there.split());
        let (mut sent, mut got) = (vec![], vec![]);
        say.seal(b"suspend the job", &mut sent).unwrap();
        assert!(!sent.windows(7).any(|window| window == b"suspend"));
        listen.open(&sent, &mut got).unwrap();
        assert_eq!(got, b"suspend the job");
        let mut back = vec![];
        answer.seal(b"done", &mut back).unwrap();
        got.clear();
        hear.open(&back, &mut got).unwrap();
        assert_eq!(got, b"done");
    }

    #[test]
    fn what_was_left_out_sent_again_or_moved_is_found() {
        for order in [&[1][..], &[0, 0], &[0, 2], &[1, 0]] {
            let (records, mut opener) = three();
            let opened = order
                .iter()
                .try_for_each(|record| opener.open(&records[*record], &mut vec![]));
            assert_eq!(opened, Err(SealError::NotAuthentic), "{order:?}");
        }
    }

    #[test]
    fn a_side_does_not_take_its_own_words_for_the_others() {
        let (here, _there) = channels();
        let (mut say, mut hear) = here.split();
        let mut sent = vec![];
        say.seal(b"reflected", &mut sent).unwrap();
        assert_eq!(hear.open(&sent, &mut vec![]), Err(SealError::NotAuthentic));
    }

    #[test]
    fn another_connection_of_the_same_job_has_other_keys() {
        let ([first, ..], _) = three();
        let (_, mut other) = three();
        let opened = other.open(&first, &mut vec![]);
        assert_eq!(opened, Err(SealError::NotAuthentic));
    }

    #[test]
    fn a_record_without_room_for_its_tag_is_refused() {
        let (_, mut opener) = three();
        let opened = opener.open(&[3, 0, 1, 2, 3], &mut vec![]);
        assert_eq!(opened, Err(SealError::Length(3)));
    }

    proptest! {
        #[test]
        fn bytes_survive_any_cutting(
            lengths in proptest::collection::vec(0usize..200_000, 1..6),
            cuts in proptest::collection::vec(1usize..90_000, 1..40))
        {
            let (here, there) = channels();
            let (mut sealer, mut opener) = (here.split().0, there.split().1);
            let (mut wire, mut all, mut got) = (vec![], vec![], vec![]);
            for (index, length) in lengths.iter().enumerate() {
                let bytes: Vec<u8> = (0..*length).map(|at| (at * 7 + index) as u8).collect();
                sealer.seal(&bytes, &mut wire).unwrap();
                all.extend(bytes);
            }
            let mut rest = &wire[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                opener.open(piece, &mut got).unwrap();
                rest = after;
            }
            prop_assert!(got == all);
        }

        #[test]
        fn a_flipped_bit_is_found(at in any::<proptest::sample::Index>(), bit in 0u8..8) {
            let ([first, second, _], mut opener) = three();
            let mut wire = [first, second].concat();
            let at = at.index(wire.len());
            wire[at] ^= 1 << bit;
            let mut got = vec![];
            // A changed length may also leave the reader waiting for the rest.
            let opened = opener.open(&wire, &mut got);
            prop_assert!(opened.is_err() || got.len() < 6);
            prop_assert!(b"onetwo".starts_with(&got));
        }
    }
}
