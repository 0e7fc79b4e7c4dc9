//! The bytes of a standard input that have passed: their number, and sums that show whether another launch's input begins with them.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// The number of bytes that are summed at once. Bytes that do not fill a block yet are kept: an image holds all that is needed to continue.
const BLOCK: usize = 4096;

/// Bytes that have passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Whole blocks, and the sum of all of them.
    blocks: u64,
    sum: [u64; 2],
    /// The bytes behind them.
    rest: Vec<u8>,
    /// The sum after 1, 4, 16, ... blocks: they reveal early that a long input is a different one.
    marks: Vec<[u64; 2]>,
}

/// The result of comparing an input with an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is shorter, and may yet be the same.
    SoFar,
    Same,
    Differs,
}

impl Passed {
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK as u64 + self.rest.len() as u64
    }

    pub fn add(&mut self, mut bytes: &[u8]) {
        while self.rest.len() + bytes.len() >= BLOCK {
            let (now, later) = bytes.split_at(BLOCK - self.rest.len());
            self.rest.extend_from_slice(now);
            bytes = later;
            self.sum_block();
        }
        self.rest.extend_from_slice(bytes);
    }

    fn sum_block(&mut self) {
        let mut all = Vec::with_capacity(16 + BLOCK);
        all.extend(self.sum.iter().flat_map(|word| word.to_le_bytes()));
        all.append(&mut self.rest);
        let sum = xxh3_128(&all);
        self.sum = [sum as u64, (sum >> 64) as u64];
        self.blocks += 1;
        if self.blocks.is_power_of_two() && self.blocks.trailing_zeros().is_multiple_of(2) {
            self.marks.push(self.sum);
        }
    }

    /// Compares with the beginning of `whole`, which must not be shorter.
    pub fn likeness(&self, whole: &Passed) -> Likeness {
        let alike = self.marks.iter().zip(&whole.marks);
        if alike.into_iter().any(|(own, other)| own != other) {
            Likeness::Differs
        } else if self.bytes() < whole.bytes() {
            Likeness::SoFar
        } else if self == whole {
            Likeness::Same
        } else {
            Likeness::Differs
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(bytes: &[u8]) -> Passed {
        let mut passed = Passed::default();
        passed.add(bytes);
        passed
    }

    #[test]
    fn how_it_came_makes_no_difference() {
        let text: Vec<u8> = (0..200_000u32).map(|number| (number / 7) as u8).collect();
        for piece in [1, 5, 4095, 4096, 4097, 150_000] {
            let mut pieces = Passed::default();
            text.chunks(piece).for_each(|piece| pieces.add(piece));
            assert_eq!(pieces, passed(&text), "{piece}");
            assert_eq!(pieces.bytes(), 200_000);
        }
    }

    #[test]
    fn another_input_is_known_by_its_first_block_or_by_its_last_byte() {
        let text: Vec<u8> = (0..100_000u32).map(|number| (number / 3) as u8).collect();
        let whole = passed(&text);
        assert_eq!(passed(&[]).likeness(&whole), Likeness::SoFar);
        assert_eq!(passed(&text[..99_999]).likeness(&whole), Likeness::SoFar);
        assert_eq!(passed(&text).likeness(&whole), Likeness::Same);
        let mut other = text.clone();
        other[99_999] += 1;
        assert_eq!(passed(&other).likeness(&whole), Likeness::Differs);
        other[17] += 1;
        assert_eq!(passed(&other[..4096]).likeness(&whole), Likeness::Differs);
        assert_eq!(passed(b"1\n").likeness(&passed(b"2\n")), Likeness::Differs);
    }
}
