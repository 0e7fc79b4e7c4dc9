//! Messages between agents, coordinator, command and peers, in both directions: what stands in a frame, and frames in a stream.

use stillpoint_protocol::agent::{FromAgent, ToAgent};
use stillpoint_protocol::codec::{Decode, Encode, Frames, decode, encode};
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::peer::{Answer, Request};

/// The first byte says which messages the others are. Below 8 they are what stands in one frame; else a stream, of which the
/// second byte says in pieces of how many bytes it comes.
pub fn protocol(input: &[u8]) -> bool {
    let Some((kind, rest)) = input.split_first() else {
        return false;
    };
    let streamed = kind & 8 != 0;
    match kind % 8 {
        0 => messages::<FromAgent>(rest, streamed),
        1 => messages::<ToAgent>(rest, streamed),
        2 => messages::<FromCommand>(rest, streamed),
        3 => messages::<ToCommand>(rest, streamed),
        4 => messages::<Request>(rest, streamed),
        5 => messages::<Answer>(rest, streamed),
        _ => false,
    }
}

fn messages<M: Decode<()> + Encode>(bytes: &[u8], streamed: bool) -> bool {
    match streamed {
        true => stream::<M>(bytes),
        false => payload::<M>(bytes),
    }
}

/// One payload. A number may be no number, which equals none, so that bytes are compared.
fn payload<M: Decode<()> + Encode>(bytes: &[u8]) -> bool {
    let Ok(message) = decode::<M>(bytes) else {
        return false;
    };
    let frame = encode(&message).expect("what was decoded can be encoded");
    let again: M = decode(&frame[4..]).expect("what was encoded can be decoded");
    assert_eq!(encode(&again).expect("as before"), frame);
    true
}

/// The same messages come out, whole or in pieces, up to the same end.
fn stream<M: Decode<()> + Encode>(input: &[u8]) -> bool {
    let Some((piece, bytes)) = input.split_first() else {
        return false;
    };
    let whole = cut::<M>(bytes, bytes.len().max(1));
    let pieces = cut::<M>(bytes, usize::from(*piece).max(1));
    assert_eq!(whole, pieces);
    !whole.0.is_empty()
}

/// The messages, again as frames, and whether the stream is of any more use.
fn cut<M: Decode<()> + Encode>(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut frames, mut found) = (Frames::default(), vec![]);
    for piece in bytes.chunks(piece) {
        frames.push(piece);
        loop {
            match frames.next_message::<M>() {
                Ok(Some(message)) => found.push(encode(&message).expect("it was decoded")),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}
