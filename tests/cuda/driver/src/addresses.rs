//! The allocation of addresses in a range.

use std::collections::BTreeMap;
use std::ops::Range;

/// A range, and the parts of it that are in use.
#[derive(Debug)]
pub struct Addresses {
    range: Range<u64>,
    used: BTreeMap<u64, u64>,
}

impl Addresses {
    pub fn new(range: Range<u64>) -> Addresses {
        Addresses {
            range,
            used: BTreeMap::new(),
        }
    }

    /// Returns the lowest place for some bytes.
    pub fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let mut at = self.range.start.next_multiple_of(alignment);
        for (&start, &length) in &self.used {
            if start >= at.checked_add(size)? {
                break;
            }
            at = (start + length).next_multiple_of(alignment);
        }
        if at.checked_add(size)? > self.range.end {
            return None;
        }
        self.used.insert(at, size);
        Some(at)
    }

    /// Gives a place back.
    pub fn give_back(&mut self, at: u64) {
        self.used.remove(&at);
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn the_lowest_place_is_taken() {
        let mut addresses = Addresses::new(100..1000);
        assert_eq!(addresses.take(10, 64), Some(128));
        assert_eq!(addresses.take(10, 64), Some(192));
        assert_eq!(addresses.take(700, 4), Some(204));
        assert_eq!(addresses.take(200, 4), None);
        addresses.give_back(128);
        assert_eq!(addresses.take(20, 4), Some(100));
        assert_eq!(addresses.take(20, 4), Some(120));
    }
}
