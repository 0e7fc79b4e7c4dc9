//! The bytes of each region that are touched, written to, hashed, changed and written, for the people who read an image's description.

use std::ops::Range;

use stillpoint_image::{Region, RegionBytes};
use stillpoint_part::Kind;

/// The payload of an image with these numbers; no restart reads it.
pub const KIND: Kind = Kind {
    name: stillpoint_image::changes::NAME,
    version: stillpoint_image::changes::VERSION,
    always: false,
};

/// The regions of an image, in order of address, each with its bytes.
#[derive(Default)]
pub struct Account {
    ends: Vec<(usize, usize)>,
    bytes: Vec<RegionBytes>,
}

impl Account {
    pub fn of(regions: &[Region]) -> Account {
        let ends = regions
            .iter()
            .map(|one| (one.start as usize, one.end as usize));
        Account {
            ends: ends.collect(),
            bytes: vec![RegionBytes::default(); regions.len()],
        }
    }

    pub fn touched(&mut self, ranges: &[Range<usize>]) {
        self.add(ranges, |bytes| &mut bytes.touched);
    }

    /// Adds stretches that were written to, of any regions; before the first call, none are known.
    pub fn page_dirty(&mut self, ranges: &[Range<usize>]) {
        self.add(ranges, |bytes| bytes.page_dirty.get_or_insert(0));
    }

    /// From this call on it is known which bytes were written to: none, apart from those that are added.
    pub fn knows_what_was_written_to(&mut self) {
        for bytes in &mut self.bytes {
            bytes.page_dirty.get_or_insert(0);
        }
    }

    pub fn hashed(&mut self, ranges: &[Range<usize>]) {
        self.add(ranges, |bytes| &mut bytes.hashed);
    }

    pub fn hash_dirty(&mut self, ranges: &[Range<usize>]) {
        self.add(ranges, |bytes| &mut bytes.hash_dirty);
    }

    pub fn written(&mut self, ranges: &[Range<usize>]) {
        self.add(ranges, |bytes| &mut bytes.written);
    }

    fn add(&mut self, ranges: &[Range<usize>], of: fn(&mut RegionBytes) -> &mut u64) {
        for range in ranges {
            let first = self.ends.partition_point(|(_, end)| *end <= range.start);
            let there = self.ends.get(first..).zip(self.bytes.get_mut(first..));
            let both = there
                .into_iter()
                .flat_map(|(ends, bytes)| ends.iter().zip(bytes));
            for ((start, end), bytes) in both.take_while(|((start, _), _)| *start < range.end) {
                *of(bytes) += (range.end.min(*end) - range.start.max(*start)) as u64;
            }
        }
    }

    pub fn bytes(&self) -> &[RegionBytes] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_added_to_the_regions_that_they_lie_in() {
        let region = |start, end| Region {
            start,
            end,
            ..Region::default()
        };
        let mut account = Account::of(&[region(10, 20), region(20, 40), region(50, 60)]);
        account.touched(&[5..12, 18..55, 58..70]);
        account.touched(std::slice::from_ref(&(10..11)));
        let touched = |account: &Account| -> Vec<u64> {
            account.bytes().iter().map(|bytes| bytes.touched).collect()
        };
        assert_eq!(touched(&account), [2 + 2 + 1, 20, 5 + 2]);
        account.page_dirty(std::slice::from_ref(&(30..32)));
        let dirty = |account: &Account| -> Vec<Option<u64>> {
            account
                .bytes()
                .iter()
                .map(|bytes| bytes.page_dirty)
                .collect()
        };
        assert_eq!(dirty(&account), [None, Some(2), None]);
        account.knows_what_was_written_to();
        assert_eq!(dirty(&account), [Some(0), Some(2), Some(0)]);
        account.hashed(std::slice::from_ref(&(30..31)));
        account.hash_dirty(std::slice::from_ref(&(30..33)));
        account.written(std::slice::from_ref(&(30..34)));
        let RegionBytes {
            hashed,
            hash_dirty,
            written,
            ..
        } = account.bytes()[1];
        assert_eq!((hashed, hash_dirty, written), (1, 3, 4));
    }
}
