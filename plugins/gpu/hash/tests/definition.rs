//! The requirements on the hash: every bit of a block counts, its length counts, and patterns in blocks cause no collisions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use stillpoint_gpu_hash::{LANES, UNIT, hash};

/// Returns bytes without a pattern, the same ones each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Another program, in another language, computed these from the definition's words. The answers must stay, since tables of hashes
/// are kept from epoch to epoch.
#[test]
fn known_answers() {
    let known = [
        (0, KNOWN[0]),
        (1, KNOWN[1]),
        (16, KNOWN[2]),
        (17, KNOWN[3]),
        (2048, KNOWN[4]),
        (65_536, KNOWN[5]),
        (1 << 20, KNOWN[6]),
    ];
    for (length, answer) in known {
        let found = hash(&noise(length));
        assert_eq!(found, answer, "{length} bytes: {found:#034x}");
    }
    assert_eq!(hash(&[0; 65_536]), KNOWN[7], "{:#034x}", hash(&[0; 65_536]));
}

const KNOWN: [u128; 8] = [
    0x4558_2b2e_22d7_411e_c340_aced_c21d_dc77,
    0xd8f5_010d_0144_d65b_e3cd_5d88_b726_f4eb,
    0xbeab_27ff_7d45_bed6_7a80_dd34_d0f8_c1ab,
    0x6b9c_c48f_22cc_ecbb_6dc7_33a8_6d8a_34db,
    0x5540_103a_663c_db27_225f_62f1_cfb5_1f57,
    0xa5bf_b6fa_2e33_362e_dbad_2efe_e06d_973d,
    0xbe42_6045_c5c0_ce87_1489_41af_30e8_a345,
    0x175f_5002_8366_cf04_6d01_5ff5_62e3_0a62,
];

/// A changed bit in a block changes each bit of the hash in half of the cases, with no larger deviation than chance allows.
#[test]
fn each_bit_changes_half_of_the_hash() {
    for length in [1, 16, 100, 2048, 4096] {
        let mut bytes = noise(length);
        let before = hash(&bytes);
        let places: Vec<usize> = (0..length * 8).step_by((length / 64).max(1)).collect();
        let (mut flips, mut least) = ([0u32; 128], 128);
        for place in &places {
            bytes[place / 8] ^= 1 << (place % 8);
            let changed = before ^ hash(&bytes);
            bytes[place / 8] ^= 1 << (place % 8);
            least = least.min(changed.count_ones());
            for (bit, flips) in flips.iter_mut().enumerate() {
                *flips += u32::from(changed >> bit & 1 == 1);
            }
        }
        assert!(
            least > 32,
            "{length} bytes: a change of {least} bits of 128"
        );
        // Six standard deviations, for 128 bits of five lengths.
        let of = places.len() as f64;
        for (bit, flips) in flips.into_iter().enumerate() {
            let off = (f64::from(flips) - of / 2.0).abs() / (of.sqrt() / 2.0);
            assert!(
                off < 6.0,
                "{length} bytes: bit {bit} changes in {flips} of {of} cases"
            );
        }
    }
}

/// Blocks with almost only zeros, for every place of a set bit and for pairs of such places. No two have the same hash in the 80 bits that tables
/// keep, nor, except by chance, in 40 of them.
#[test]
fn sparse_blocks_are_told_apart() {
    let length = 4 * LANES * UNIT;
    let mut bytes = vec![0; length];
    let mut kept = BTreeSet::new();
    let mut short = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
    let mut all = 1u64;
    let mut note = |bytes: &[u8]| {
        let found = hash(bytes);
        assert!(kept.insert(found & ((1 << 80) - 1)), "found twice");
        for (place, short) in short.iter_mut().enumerate() {
            short.insert(found >> (40 * place) & ((1 << 40) - 1));
        }
        all += 1;
    };
    note(&bytes);
    for place in 0..length {
        for bit in [0, 3, 7] {
            bytes[place] = 1 << bit;
            note(&bytes);
            bytes[place] = 0;
        }
    }
    // The same bit is set in two units of one lane, in two lanes, and in the two halves of a unit.
    for place in (0..length / 2).step_by(8) {
        for other in [8, UNIT, LANES * UNIT, 2 * LANES * UNIT] {
            for bit in [0, 7] {
                (bytes[place], bytes[place + other]) = (1 << bit, 1 << bit);
                note(&bytes);
                (bytes[place], bytes[place + other]) = (0, 0);
            }
        }
    }
    // n^2 / 2^41 collisions are expected in 40 bits: less than one thousandth for each range of bits.
    for short in short {
        assert!(
            short.len() as u64 >= all - 1 - 1,
            "{} of {all}",
            short.len()
        );
    }
}

/// Counters in either half of a unit, as programs have them in memory.
#[test]
fn counters_are_told_apart() {
    let mut seen = BTreeSet::new();
    for count in 0..100_000u64 {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(&count.to_le_bytes());
        assert!(seen.insert(hash(&bytes) as u64));
        bytes[8..16].copy_from_slice(&(!count).to_le_bytes());
        assert!(seen.insert(hash(&bytes) as u64));
    }
}

/// Zeros at the end count, even if no lane reads them.
#[test]
fn length_counts() {
    let zeros = vec![0; 3 * LANES * UNIT];
    let all: BTreeSet<u128> = (0..zeros.len())
        .map(|length| hash(&zeros[..length]))
        .collect();
    assert_eq!(all.len(), zeros.len());
}

proptest! {
    /// Moving bytes within a block changes the hash.
    #[test]
    fn order_counts(bytes in proptest::collection::vec(any::<u8>(), 32..6000), at in any::<prop::sample::Index>(), by in 1usize..4096) {
        let (one, mut other) = (hash(&bytes), bytes.clone());
        let from = at.index(bytes.len());
        let to = (from + by) % bytes.len();
        other.swap(from, to);
        prop_assert_eq!(one == hash(&other), bytes == other);
        other = bytes.clone();
        other.rotate_left(by % bytes.len());
        prop_assert_eq!(one == hash(&other), bytes == other);
    }
}
