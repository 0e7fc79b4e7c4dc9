//! A hash of a block of memory that both GPUs and processors compute fast, with the same result.
//!
//! xxh3, which processors use elsewhere, is one long chain. A GPU has thousands of threads, and each needs work. So this hash reads a block in rows
//! of 128 units of 16 bytes, and each column is a *lane*. A lane has its own state and is independent of the others until the block's end. On a GPU a
//! lane is a thread, and the threads of a row read adjacent bytes.
//!
//! Each step with a unit can be inverted. So if two blocks differ in only one lane, their states there differ, unless a later difference in the same
//! lane makes up for the first. At the end each lane's state is mixed three times, the states are added up, and the sum is mixed with the length.
//! That is the hash: 128 bits.
//!
//! It protects against chance, not against a person who looks for two blocks with the same hash.
//!
//! * [`hash`] - the definition, in plain Rust
//! * [`kernel`] - the same as a GPU's program

#![no_std]
#![forbid(unsafe_code)]

pub mod kernel;

/// The number of lanes.
pub const LANES: usize = 128;

/// Bytes of a unit, the input of one step of a lane.
pub const UNIT: usize = 16;

/// Bytes of a row: a unit of each lane.
const ROW: usize = LANES * UNIT;

/// The multipliers of states: odd, so that multiplication can be inverted, and without a pattern in their bits.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// The number of bits by which halves of a state are rotated before they go into the other half. Multiplication does not spread
/// bits to the lowest ones.
const TURNS: [u32; 2] = [32, 29];

/// The number of times that a lane's state is mixed at the end, and also the sum.
const MIXES: usize = 3;

/// The two halves of a lane's state, or of a hash.
type State = [u64; 2];

/// Computes the hash of any number of bytes.
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
        // Zeros fill up the last unit. The length tells them from real ones.
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

/// Returns a lane's initial state, which is different for each lane.
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
