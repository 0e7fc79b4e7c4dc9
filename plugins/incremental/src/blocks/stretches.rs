//! Which bytes are written for what has changed: few stretches, where changes lie close together.
//!
//! Each stretch is a line of an image's table, and a second one as soon as a later epoch carries a part of what it lies in. A program
//! that changes eight bytes of every two hundred would have more lines than bytes. So where a page has many stretches, what lies
//! between those that are near each other is written along.

use std::ops::Range;

use super::{Change, PAGE};

/// Stretches that begin in one page and are told apart in any case.
const FEW: usize = 4;

/// Closer than this, stretches of a page that has more become one.
const NEAR: u64 = 256;

/// What is written for these changes, which ascend: their bytes, but for zeros, and what lies between where it is not worth a line.
pub fn stretches(changes: &[Change]) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    let written: Vec<_> = changes.iter().filter(|change| !change.zero).collect();
    for page in written.chunk_by(|one, next| one.at.start / PAGE == next.at.start / PAGE) {
        let first = all.len();
        for change in page {
            match all[first..].last_mut() {
                Some(last) if page.len() > FEW && change.at.start - last.end < NEAR => {
                    last.end = change.at.end;
                }
                _ => all.push(change.at.clone()),
            }
        }
    }
    all
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]
mod tests {
    use super::*;

    fn changes(count: u64, every: u64) -> Vec<Change> {
        let at = |number| PAGE + number * every..PAGE + number * every + 64;
        let change = |number| Change {
            at: at(number),
            zero: false,
        };
        (0..count).map(change).collect()
    }

    #[test]
    fn few_stretches_of_a_page_are_told_apart() {
        for count in 0..=FEW as u64 {
            let few = changes(count, 128);
            let at: Vec<_> = few.iter().map(|change| change.at.clone()).collect();
            assert_eq!(stretches(&few), at);
        }
    }

    #[test]
    fn many_that_are_near_each_other_become_one() {
        let many = changes(FEW as u64 + 1, 128);
        assert_eq!(stretches(&many), [PAGE..PAGE + 4 * 128 + 64]);
        // Not those that are far apart.
        assert_eq!(stretches(&changes(10, 64 + NEAR)).len(), 10);
        assert_eq!(stretches(&changes(10, 63 + NEAR)).len(), 1);
        // In the next page they are counted anew.
        let two_pages = stretches(&changes(PAGE / 128 + 2, 128));
        let next = 2 * PAGE;
        let expected = [
            PAGE..next - 64,
            next..next + 64,
            next + 128..next + 128 + 64,
        ];
        assert_eq!(two_pages, expected);
    }

    #[test]
    fn zeros_are_written_only_where_they_lie_between() {
        let mut some = changes(FEW as u64 + 2, 128);
        some[0].zero = true;
        some[3].zero = true;
        // Four are left.
        assert_eq!(stretches(&some).len(), 4);
        some.extend(changes(FEW as u64 + 3, 128).pop());
        assert_eq!(stretches(&some), [PAGE + 128..PAGE + 6 * 128 + 64]);
    }
}
