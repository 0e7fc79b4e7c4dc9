//! A hash of blocks of memory: one thread block a block, one thread a lane of it.

use super::Arguments;

const THREADS: usize = 128;
const UNIT: usize = 16;

/// Mixes a lane's two numbers with each other.
fn mix(low: &mut u64, high: &mut u64) {
    *low = low.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    *high ^= low.rotate_left(32);
    *high = high.wrapping_mul(0xd6e8_feb8_6659_fd93);
    *low ^= high.rotate_left(29);
}

/// Computes one thread's numbers, before they are added to those of the others.
fn lane(thread: usize, units: &[[u8; UNIT]]) -> (u64, u64) {
    let seed = thread as u64 + 1;
    let mut low = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut high = seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
    for unit in units.iter().skip(thread).step_by(THREADS) {
        let (words, _) = unit.as_chunks::<8>();
        low ^= u64::from_le_bytes(words[0]);
        high ^= u64::from_le_bytes(words[1]);
        mix(&mut low, &mut high);
    }
    for _ in 0..3 {
        mix(&mut low, &mut high);
    }
    (low, high)
}

/// `stillpoint_hash(u8 *memory, u64 bytes, u64 block, u64 hashes[][2])` computes the hash of each block of so many bytes; the last block may be
/// shorter.
pub fn stillpoint_hash(arguments: &Arguments) -> Result<(), u32> {
    let (address, bytes) = (arguments.u64(0)?, arguments.u64(1)?);
    let (block, hashes) = (arguments.u64(2)?, arguments.u64(3)?);
    let blocks = arguments.grid()[0];
    // SAFETY: the program that launches it lets no one write there meanwhile, and the hashes lie elsewhere.
    let memory = unsafe { arguments.numbers::<u8>(address, bytes as usize) }?;
    // SAFETY: as above.
    let hashes = unsafe { arguments.numbers_mut::<u64>(hashes, 2 * blocks as usize) }?;
    let (hashes, _) = hashes.as_chunks_mut::<2>();
    for (memory, hash) in memory.chunks(block as usize).zip(hashes) {
        let (units, _) = memory.as_chunks::<UNIT>();
        let (mut low, mut high) = (memory.len() as u64, 0);
        let mut sum = (0u64, 0u64);
        for thread in 0..THREADS {
            let (one, other) = lane(thread, units);
            sum = (sum.0.wrapping_add(one), sum.1.wrapping_add(other));
        }
        (low, high) = (low ^ sum.0, high ^ sum.1);
        for _ in 0..3 {
            mix(&mut low, &mut high);
        }
        *hash = [low, high];
    }
    Ok(())
}
