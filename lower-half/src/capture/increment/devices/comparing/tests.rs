//! Tests of the comparison of a device's memory by hashes.

use super::*;

const SHORT: u64 = 1000;

/// Returns three blocks and a short one, each with other bytes.
fn memory() -> Vec<u8> {
    let bytes = 0..3 * BLOCK + SHORT;
    bytes.map(|at| (at / BLOCK * 7 + at % 251) as u8).collect()
}

fn blocks(memory: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let blocks = memory.chunks(BLOCK as usize);
    (0..).step_by(BLOCK as usize).zip(blocks)
}

fn hashes(memory: &[u8]) -> Vec<Hash> {
    let hashes = blocks(memory).map(|(_, bytes)| Hash::kept(hash(bytes)));
    hashes.collect()
}

/// Blocks that are written, unchanged ranges, and blocks that arrived.
type Parts = (Vec<u64>, Vec<Range<u64>>, Vec<u64>);

/// Compares `now` with `before`, with some bytes left and the hashes of some blocks reported.
fn compared(
    before: &[u8],
    now: &[u8],
    left: &[Range<u64>],
    told: impl Fn(u64) -> bool,
) -> Result<Parts, Wrong> {
    let mut comparing = Comparing::new(now.len() as u64, hashes(before), left);
    let hashed = blocks(now).map(|(at, bytes)| told(at / BLOCK).then(|| hash(bytes)));
    comparing.told(&hashed.collect::<Vec<_>>());
    let wanted = comparing.wanted();
    let (mut came, mut written) = (Vec::new(), Vec::new());
    for (at, bytes) in blocks(now) {
        if wanted.iter().any(|range| range.contains(&at)) {
            came.push(at / BLOCK);
            if comparing.has_come(at, bytes)? {
                written.push(at / BLOCK);
            }
        }
    }
    let (known, unchanged) = comparing.end()?;
    assert_eq!(known, hashes(now), "the next epoch compares with these");
    Ok((written, unchanged, came))
}

#[test]
fn what_has_changed_comes_and_is_written() {
    let before = memory();
    let mut now = before.clone();
    now[BLOCK as usize + 17] ^= 1;
    let all = now.len() as u64;
    for told in [|_| true, |_| false, |block| block != 1, |block| block == 2] {
        let (written, unchanged, came) = compared(&before, &now, &[], told).expect("compared");
        assert_eq!(written, [1]);
        assert_eq!(unchanged, [0..BLOCK, 2 * BLOCK..all]);
        let expected: Vec<u64> = (0..4)
            .filter(|block| !told(*block) || *block == 1)
            .collect();
        assert_eq!(came, expected);
    }
}

/// Blocks with the right hash that have to be written again all the same; and memory that is longer now, or shorter, or of which nothing is
/// known.
#[test]
fn what_is_left_and_what_is_new_is_written() {
    let now = memory();
    let all = now.len() as u64;
    let told = |_| true;
    let left = [10..20, 2 * BLOCK - 1..2 * BLOCK + 1];
    let (written, unchanged, came) = compared(&now, &now, &left, told).expect("compared");
    assert_eq!((written, came), (vec![0, 1, 2], vec![0, 1, 2]));
    assert_eq!(unchanged, [3 * BLOCK..all]);
    let shorter = &now[..now.len() - 1];
    let (written, unchanged, _) = compared(shorter, &now, &[], told).expect("compared");
    assert_eq!((written, unchanged), (vec![3], vec![0..3 * BLOCK]));
    let (written, unchanged, _) = compared(&now, shorter, &[], told).expect("compared");
    assert_eq!((written, unchanged), (vec![3], vec![0..3 * BLOCK]));
    let (written, unchanged, _) = compared(&[], &now, &[], told).expect("compared");
    assert_eq!((written, unchanged), (vec![0, 1, 2, 3], vec![]));
    let (written, unchanged, came) = compared(&now, &[], &[], told).expect("compared");
    assert!(written.is_empty() && unchanged.is_empty() && came.is_empty());
}

/// A byte changes on its way.
#[test]
fn bytes_that_are_not_what_was_hashed_are_refused() {
    let now = memory();
    let mut comparing = Comparing::new(now.len() as u64, Vec::new(), &[]);
    let mut told: Vec<_> = blocks(&now).map(|(_, bytes)| Some(hash(bytes))).collect();
    told[0] = None;
    comparing.told(&told);
    let mut other = now[..2 * BLOCK as usize].to_vec();
    other[5] ^= 1;
    other[BLOCK as usize] ^= 1;
    let first = &other[..BLOCK as usize];
    assert_eq!(
        comparing.has_come(0, first),
        Ok(true),
        "nobody has told its hash"
    );
    let second = &other[BLOCK as usize..];
    let wrong = comparing.has_come(BLOCK, second).expect_err("another one");
    assert!(
        wrong
            .to_string()
            .starts_with("65536 bytes of it at 65536 are not what was hashed")
    );
}

#[test]
fn what_does_not_come_is_noticed() {
    let now = memory();
    let mut comparing = Comparing::new(now.len() as u64, hashes(&now), &[]);
    for (at, bytes) in [
        (1, BLOCK),
        (0, BLOCK - 1),
        (0, 0),
        (3 * BLOCK, BLOCK),
        (4 * BLOCK, 0),
    ] {
        let wrong = comparing.has_come(at, &now[..bytes as usize]);
        assert_eq!(wrong, Err(Wrong::NoBlock { at, bytes }));
    }
    assert_eq!(comparing.has_come(0, &now[..BLOCK as usize]), Ok(false));
    assert_eq!(
        comparing.end().expect_err("three are missing"),
        Wrong::Missing(BLOCK)
    );
}
