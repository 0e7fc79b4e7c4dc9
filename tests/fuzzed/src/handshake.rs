//! Messages of a stranger before and instead of the handshake, and changes to messages after it.

use stillpoint_protocol::Key;
use stillpoint_protocol::handshake::{
    CLIENT_HELLO_BYTES, Client, PROOF_BYTES, Role, SERVER_HELLO_BYTES, Server,
};

/// The first byte selects the meaning of the others. 0: a client's hello; 1: a server's; 2: a client's proof; else changes of sent
/// records, as pairs of a place and of a number to add there.
pub fn handshake(input: &[u8]) -> bool {
    let Some((form, rest)) = input.split_first() else {
        return false;
    };
    let key: Key = "5a".repeat(32).parse().expect("64 digits");
    let client = Client::new(&key, Role::Agent).expect("random numbers");
    match form {
        0 => {
            let server = Server::new(&key, &filled::<CLIENT_HELLO_BYTES>(rest));
            assert!(server.is_err(), "whoever does not hold the key was let in");
            false
        }
        1 => {
            let answer = client.answer(&filled::<SERVER_HELLO_BYTES>(rest));
            assert!(answer.is_err(), "a server without the key was believed");
            false
        }
        2 => {
            let server = Server::new(&key, client.hello()).expect("it holds the key");
            let checked = server.check(&filled::<PROOF_BYTES>(rest));
            assert!(checked.is_err(), "a client without the key was believed");
            false
        }
        _ => records(&key, client, rest),
    }
}

/// Returns so many bytes, the first ones given.
fn filled<const COUNT: usize>(bytes: &[u8]) -> [u8; COUNT] {
    let mut filled = [0; COUNT];
    let count = bytes.len().min(COUNT);
    filled[..count].copy_from_slice(&bytes[..count]);
    filled
}

/// Checks records that were changed on the way: the receiver gets only a beginning of the sent ones.
fn records(key: &Key, client: Client, changes: &[u8]) -> bool {
    let server = Server::new(key, client.hello()).expect("it holds the key");
    let (_, proof, here) = client.answer(server.hello()).expect("it holds the key");
    let (_, _, there) = server.check(&proof).expect("it holds the key");
    let (mut sealer, mut opener) = (here.split().0, there.split().1);
    let sent: Vec<u8> = (0..90).collect();
    let mut wire = vec![];
    for part in sent.chunks(30) {
        sealer.seal(part, &mut wire).expect("bytes");
    }
    for change in changes.chunks_exact(2) {
        let at = usize::from(change[0]) % wire.len();
        wire[at] = wire[at].wrapping_add(change[1]);
    }
    let (mut got, mut accepted) = (vec![], true);
    let piece = usize::from(changes.first().copied().unwrap_or(0)).max(1);
    for piece in wire.chunks(piece) {
        if opener.open(piece, &mut got).is_err() {
            accepted = false;
            break;
        }
    }
    assert!(sent.starts_with(&got));
    accepted && got == sent
}
