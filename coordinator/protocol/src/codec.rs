//! The encoding of messages: a frame is its length (`u32`, little-endian) and that many bytes of bincode. No other module depends on it.
//!
//! Bytes that arrive are not trusted. A frame longer than [`MAX_FRAME`] is refused before any memory is allocated for it, lengths inside it are bounded by
//! the same limit, and bytes left over are an error.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
pub use bincode::{Decode, Encode};

/// The longest payload of a frame. The largest message is a table of targets, of at most 20 bytes for each group.
pub const MAX_FRAME: usize = 16 << 20;

const CONFIGURATION: Configuration<LittleEndian, Varint, Limit<MAX_FRAME>> =
    bincode::config::standard().with_limit::<MAX_FRAME>();

/// The reason why bytes are not a message, or a message cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("a message of {0} bytes, which is too long (at most {MAX_FRAME} bytes)")]
    TooLong(usize),
    #[error("a malformed message: {0}")]
    Malformed(String),
}

/// Encodes a message as a whole frame.
pub fn encode<M: Encode>(message: &M) -> Result<Vec<u8>, CodecError> {
    let mut frame = vec![0; 4];
    let length = bincode::encode_into_std_write(message, &mut frame, CONFIGURATION)
        .map_err(|error| CodecError::Malformed(error.to_string()))?;
    if length > MAX_FRAME {
        return Err(CodecError::TooLong(length));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// Decodes the message in a frame's payload.
pub fn decode<M: Decode<()>>(payload: &[u8]) -> Result<M, CodecError> {
    let (message, used) = bincode::decode_from_slice(payload, CONFIGURATION)
        .map_err(|error| CodecError::Malformed(error.to_string()))?;
    if used != payload.len() {
        let rest = payload.len() - used;
        return Err(CodecError::Malformed(format!("{rest} bytes too many")));
    }
    Ok(message)
}

/// Cuts a stream of bytes, in pieces of any size, into messages.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    used: usize,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message, if all of it has arrived. After an error the stream is useless.
    pub fn next_message<M: Decode<()>>(&mut self) -> Result<Option<M>, CodecError> {
        let rest = &self.bytes[self.used..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(CodecError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let message = decode(payload)?;
        self.used += 4 + length;
        Ok(Some(message))
    }

    /// Whether the stream may end here.
    pub fn is_empty(&self) -> bool {
        self.used == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{FromAgent, Progress, ToAgent};
    use crate::command::{FromCommand, ToCommand};
    use proptest::prelude::*;
    use stillpoint_refusals::refusal;

    #[test]
    fn a_frame_that_claims_too_much_is_refused_at_once() {
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        let error = frames.next_message::<FromAgent>().unwrap_err();
        assert!(matches!(error, CodecError::TooLong(_)), "{error}");
    }

    #[test]
    fn a_length_inside_that_claims_too_much_sets_nothing_aside() {
        let whole = encode(&FromAgent::Refuse {
            attempt: 7,
            reason: refusal!(Internal, "{}", "x".repeat(300)),
        })
        .unwrap();
        // The length of the code's name: claim 2^63 instead.
        let mut payload = whole[4..6].to_vec();
        payload.push(253);
        payload.extend((1u64 << 63).to_le_bytes());
        assert!(decode::<FromAgent>(&payload).is_err());
    }

    #[test]
    fn bytes_left_over_are_an_error() {
        let frame = encode(&FromAgent::MpiReady).unwrap();
        let mut payload = frame[4..].to_vec();
        payload.push(0);
        assert!(decode::<FromAgent>(&payload).is_err());
    }

    proptest! {
        #[test]
        fn messages_survive_any_cutting(clocks in proptest::collection::vec(any::<(u64, u64)>(), 0..50),
                                        cuts in proptest::collection::vec(1usize..40, 1..80)) {
            let messages = vec![
                FromAgent::MpiReady,
                FromAgent::Progress { attempt: 3, progress: Progress::Clocks { clocks } },
                FromAgent::Exiting { status: -7 },
            ];
            let bytes: Vec<u8> = messages.iter().flat_map(|m| encode(m).unwrap()).collect();
            let mut frames = Frames::default();
            let mut got = vec![];
            let mut cuts = cuts.iter().cycle();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                frames.push(piece);
                rest = after;
                while let Some(message) = frames.next_message::<FromAgent>().unwrap() {
                    got.push(message);
                }
            }
            prop_assert_eq!(got, messages);
            prop_assert!(frames.is_empty());
        }

        #[test]
        fn garbage_is_an_error_or_a_message_but_never_a_crash(
            bytes in proptest::collection::vec(any::<u8>(), 0..300))
        {
            let _ = decode::<FromAgent>(&bytes);
            let _ = decode::<ToAgent>(&bytes);
            let _ = decode::<FromCommand>(&bytes);
            let _ = decode::<ToCommand>(&bytes);
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.next_message::<FromAgent>() {}
        }

        #[test]
        fn a_flipped_bit_never_crashes(at in any::<proptest::sample::Index>(), bit in 0u8..8) {
            let frame = encode(&FromAgent::Progress {
                attempt: 9,
                progress: Progress::CheckResult { refusals: vec![refusal!(MpiWindow, "a window"), refusal!(MpiFile, "a file")] },
            }).unwrap();
            let mut payload = frame[4..].to_vec();
            let at = at.index(payload.len());
            payload[at] ^= 1 << bit;
            let _ = decode::<FromAgent>(&payload);
        }
    }
}
