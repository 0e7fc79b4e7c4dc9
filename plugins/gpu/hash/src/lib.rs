//! A hash of a block of memory that a GPU and a processor both compute fast, and in the same way.
//!
//! xxh3, which processors take elsewhere, is one long chain: a GPU has thousands of threads, and each has to have something to do. Here a block is
//! read in rows of 128 units of 16 bytes, and each column is a *lane*: it has a state of its own and knows nothing of the others until the block's
//! end. On a GPU a lane is a thread; what the threads of a row read lies side by side.
//!
//! What is done with a unit can be undone, so two blocks that differ in one lane alone have different states there, unless a later difference in the
//! same lane makes up for the first. At the end the lanes' states, mixed thrice, are added up, mixed with the length, and that is the hash: 128 bits.
//!
//! It is made against chance, not against somebody who looks for two blocks with the same hash.
//!
//! * [`hash`] - the definition, in plain Rust
//! * [`kernel`] - the same as a GPU's program

#![no_std]
#![forbid(unsafe_code)]

pub mod kernel;

/// How many lanes there are.
pub const LANES: usize = 128;

/// Bytes of a unit: what a lane takes at a time.
pub const UNIT: usize = 16;

/// Bytes of a row: a unit of each lane.
const ROW: usize = LANES * UNIT;

/// What states are multiplied by: odd, so that it can be undone, and without a pattern in its bits.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// How far halves of a state are turned before they go into the other: what a multiplication does not reach is its lowest bits.
const TURNS: [u32; 2] = [32, 29];

/// How often a lane's state is mixed at the end, and the sum of all.
const MIXES: usize = 3;

/// The two halves of a lane's state, or of a hash.
type State = [u64; 2];

/// The hash of so many bytes, however many.
pub fn hash(bytes: &[u8]) -> u128 {
    let mut lanes: [State; LANES] = core::array::from_fn(first);
    let (rows, rest) = bytes.as_chunks::<ROW>();
    for row in rows {
        let (units, _) = row.as_chunks::<UNIT>();
        for (lane, unit) in lanes.iter_mut().zip(units) {
            *lane = mixed(taken(*lane, unit));
        }
    }
    let (units, rest) = rest.as_chunks::<UNIT>();
    for (lane, unit) in lanes.iter_mut().zip(units) {
        *lane = mixed(taken(*lane, unit));
    }
    if !rest.is_empty() {
        // Zeros stand for what is not there: that they are none the length says.
        let mut unit = [0; UNIT];
        unit[..rest.len()].copy_from_slice(rest);
        let lane = &mut lanes[units.len()];
        *lane = mixed(taken(*lane, &unit));
    }
    let sum = lanes.into_iter().fold([0u64; 2], |sum, lane| {
        let lane = (0..MIXES).fold(lane, |lane, _| mixed(lane));
        [sum[0].wrapping_add(lane[0]), sum[1].wrapping_add(lane[1])]
    });
    let with_length = [sum[0] ^ bytes.len() as u64, sum[1]];
    let [low, high] = (0..MIXES).fold(with_length, |sum, _| mixed(sum));
    u128::from(low) | u128::from(high) << 64
}

/// A lane's state before it has taken anything: of each another one.
fn first(lane: usize) -> State {
    FACTORS.map(|factor| factor.wrapping_mul(lane as u64 + 1))
}

fn taken(state: State, unit: &[u8; UNIT]) -> State {
    let unit = u128::from_le_bytes(*unit);
    [state[0] ^ unit as u64, state[1] ^ (unit >> 64) as u64]
}

fn mixed([low, high]: State) -> State {
    let low = low.wrapping_mul(FACTORS[0]);
    let high = (high ^ low.rotate_left(TURNS[0])).wrapping_mul(FACTORS[1]);
    [low ^ high.rotate_left(TURNS[1]), high]
}
