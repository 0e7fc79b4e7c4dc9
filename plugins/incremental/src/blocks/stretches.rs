//! The choice of bytes to write for changes: few stretches, where changes lie close together.
//!
//! Each stretch is a line of an image's table, and a second one as soon as a later epoch carries a part of the stretch. A program
//! that changes eight bytes of every two hundred would have more bytes of lines than of data. So if a page has many stretches, the
//! bytes between neighbours that are near each other are written too.

use std::ops::Range;

use super::{Change, PAGE};

/// The number of stretches in one page that always stay separate.
const FEW: usize = 4;

/// Stretches closer than this become one, if their page has more than a few.
const NEAR: u64 = 256;

/// Returns the stretches to write for these changes, which ascend: their bytes without zeros, plus gaps that are too small to be
/// worth a line.
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
        // Stretches that are far apart stay separate.
        assert_eq!(stretches(&changes(10, 64 + NEAR)).len(), 10);
        assert_eq!(stretches(&changes(10, 63 + NEAR)).len(), 1);
        // The next page counts its stretches separately.
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
