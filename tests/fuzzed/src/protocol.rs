//! Messages between agents, coordinator, command and peers, in both directions: contents of a frame, and frames in a stream.

use stillpoint_protocol::agent::{FromAgent, ToAgent};
use stillpoint_protocol::codec::{Decode, Encode, Frames, decode, encode};
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::peer::{Answer, Request};

/// The first byte selects the kind of messages. Below 8 the other bytes are the contents of one frame. Otherwise they are a
/// stream, and the second byte gives the length of the pieces in which it comes.
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

/// Reads one payload. It may contain a number that is not equal to itself (NaN), so bytes are compared.
fn payload<M: Decode<()> + Encode>(bytes: &[u8]) -> bool {
    let Ok(message) = decode::<M>(bytes) else {
        return false;
    };
    let frame = encode(&message).expect("what was decoded can be encoded");
    let again: M = decode(&frame[4..]).expect("what was encoded can be decoded");
    assert_eq!(encode(&again).expect("as before"), frame);
    true
}

/// Reads a stream whole and in pieces. The same messages must come out, up to the same end.
fn stream<M: Decode<()> + Encode>(input: &[u8]) -> bool {
    let Some((piece, bytes)) = input.split_first() else {
        return false;
    };
    let whole = cut::<M>(bytes, bytes.len().max(1));
    let pieces = cut::<M>(bytes, usize::from(*piece).max(1));
    assert_eq!(whole, pieces);
    !whole.0.is_empty()
}

/// Returns the messages, again as frames, and whether the stream can still be used.
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
