//! The table of runs in few bytes.
//!
//! If blocks of a few bytes have changed here and there, the table would take as many bytes as the pages. So a long table is *packed*:
//! three columns of variable-length numbers (LEB128), one behind the other, compressed together with zstd.
//!
//! ```text
//!   0  number of runs, u64
//!   8  bytes of the three columns, u64
//!  16  zstd of: each run's space + 1, where NOWHERE is 0 │ each run's bytes │
//!               each live run's address, less the one that is expected; zigzag
//! ```
//!
//! The expected address lies behind the live run before it, and behind as many bytes as are dead between them: in a carried chunk, dead
//! bytes once lay there.

use crate::format::{MAX_SECTION_BYTES, NOWHERE, RunRecord};

/// The least number of runs that are packed.
const LONG: usize = 1024;
/// The most bytes of runs that a byte of a packed table may stand for, so that the file's length bounds the reader's memory.
const MOST_FOR_A_BYTE: usize = 1024;
/// zstd's default: the table is small beside the pages.
const LEVEL: i32 = 3;
const HEAD: usize = 16;
/// The most bytes that a number of 64 bits takes.
const LONGEST: usize = 10;

/// Packs a long table. Returns `None` if it is short, or packing is not worth it.
pub(crate) fn pack(runs: &[RunRecord]) -> Option<Vec<u8>> {
    if runs.len() < LONG {
        return None;
    }
    let mut columns = Vec::with_capacity(4 * runs.len());
    for run in runs {
        put(&mut columns, u64::from(run.space.wrapping_add(1)));
    }
    for run in runs {
        put(&mut columns, u64::from(run.bytes));
    }
    let mut expected = 0_u64;
    for run in runs {
        if run.space != NOWHERE {
            put(&mut columns, zigzag(run.address.wrapping_sub(expected)));
            expected = run.address;
        }
        expected = expected.wrapping_add(u64::from(run.bytes));
    }
    let mut packed = Vec::with_capacity(HEAD + columns.len() / 4);
    packed.extend((runs.len() as u64).to_le_bytes());
    packed.extend((columns.len() as u64).to_le_bytes());
    packed.extend(zstd::bulk::compress(&columns, LEVEL).ok()?);
    let plain = size_of_val(runs);
    let worth_it = packed.len() < plain && plain / MOST_FOR_A_BYTE < packed.len();
    worth_it.then_some(packed)
}

/// Returns the runs of a packed table, or what is wrong with it.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<RunRecord>, String> {
    let (count, rest) = number(packed).ok_or("its header is incomplete")?;
    let (length, compressed) = number(rest).ok_or("its header is incomplete")?;
    let most = MAX_SECTION_BYTES.min((packed.len() as u64).saturating_mul(MOST_FOR_A_BYTE as u64));
    if count > most / size_of::<RunRecord>() as u64 {
        return Err(format!("{count} runs in {} bytes", packed.len()));
    }
    if length > 3 * LONGEST as u64 * count {
        return Err(format!("columns of {length} bytes for {count} runs"));
    }
    let columns = zstd::bulk::decompress(compressed, length as usize)
        .map_err(|error| format!("zstd: {error}"))?;
    if columns.len() as u64 != length {
        return Err(format!(
            "columns of {} bytes instead of {length}",
            columns.len()
        ));
    }
    let mut at = columns.as_slice();
    let mut runs = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let space = narrow(take(&mut at)?, "space")?.wrapping_sub(1);
        runs.push(RunRecord {
            address: 0,
            bytes: 0,
            space,
        });
    }
    for run in &mut runs {
        run.bytes = narrow(take(&mut at)?, "length")?;
    }
    let mut expected = 0_u64;
    for run in &mut runs {
        if run.space != NOWHERE {
            run.address = expected.wrapping_add(unzigzag(take(&mut at)?));
            expected = run.address;
        }
        expected = expected.wrapping_add(u64::from(run.bytes));
    }
    match at.len() {
        0 => Ok(runs),
        left => Err(format!("{left} bytes too many")),
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn narrow(value: u64, what: &str) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| format!("{what} {value}"))
}

/// Makes a small number of a small distance, forward or back.
fn zigzag(distance: u64) -> u64 {
    let distance = distance as i64;
    ((distance << 1) ^ (distance >> 63)) as u64
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

fn put(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn take(from: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for index in 0..LONGEST {
        let Some((byte, rest)) = from.split_first() else {
            return Err("it ends within a number".into());
        };
        *from = rest;
        let part = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if part << shift >> shift != part {
            break;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of more than 64 bits".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_run() -> impl Strategy<Value = RunRecord> {
        let space = prop_oneof![Just(0), Just(NOWHERE), any::<u32>()];
        (any::<u64>(), any::<u32>(), space).prop_map(|(address, bytes, space)| RunRecord {
            address: match space {
                NOWHERE => 0,
                _ => address,
            },
            bytes,
            space,
        })
    }

    /// Returns runs in which a tenth of all pages has changed in its first bytes.
    fn sparse(count: u64) -> Vec<RunRecord> {
        let run = |index: u64| RunRecord {
            address: 0x5501_0000_0000 + 40_960 * index,
            bytes: 64,
            space: 0,
        };
        (0..count).map(run).collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(runs in prop::collection::vec(any_run(), LONG..2 * LONG)) {
            if let Some(packed) = pack(&runs) {
                prop_assert_eq!(unpack(&packed), Ok(runs));
            }
        }

        /// The reader does not panic, and takes at most a thousand times the memory of its input.
        #[test]
        fn hostile_bytes_are_an_error(
            change in (any::<prop::sample::Index>(), 1..=u8::MAX), cut in any::<prop::sample::Index>(),
        ) {
            let packed = pack(&irregular()).expect("long enough");
            let mut bytes = packed.clone();
            bytes[change.0.index(packed.len())] ^= change.1;
            if let Ok(runs) = unpack(&bytes) {
                prop_assert!(size_of_val(runs.as_slice()) <= MOST_FOR_A_BYTE * bytes.len());
            }
            prop_assert!(unpack(&packed[..cut.index(packed.len())]).is_err());
        }
    }

    /// Returns stretches of many lengths here and there, some of them dead.
    fn irregular() -> Vec<RunRecord> {
        let mut state = 1_u64;
        let mut runs = sparse(3000);
        for run in &mut runs {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            run.bytes = 64 + (state >> 40) as u32 % 1000;
            run.address += state >> 52;
            if state >> 62 == 0 {
                (run.space, run.address) = (NOWHERE, 0);
            }
        }
        runs
    }

    #[test]
    fn a_long_table_becomes_small() {
        let runs = irregular();
        let packed = pack(&runs).expect("it is worth it");
        assert_eq!(unpack(&packed), Ok(runs.clone()));
        assert!(packed.len() < 5 * runs.len(), "{}", packed.len());
        // Short tables stay as they are, and so does one in which a byte would stand for too many.
        assert_eq!(pack(&runs[..LONG - 1]), None);
        let regular = sparse(10_000_000);
        if let Some(packed) = pack(&regular) {
            assert_eq!(unpack(&packed), Ok(regular));
        }
    }

    #[test]
    fn what_promises_too_much_is_refused() {
        let packed = pack(&irregular()).expect("it is worth it");
        let with = |at: usize, value: u64| {
            let mut bytes = packed.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            unpack(&bytes).expect_err("it cannot be")
        };
        assert!(with(0, u64::MAX).contains("runs in"));
        assert!(with(0, 1 << 40).contains("runs in"));
        assert!(with(8, 1 << 40).contains("columns of"));
        assert!(with(8, 1).contains("zstd"));
        // One more or one fewer: the columns shift.
        for count in [2999, 3001] {
            assert_ne!(with(0, count), "");
        }
    }
}
