//! Sets of addresses: ranges in order, without overlap.

use std::ops::Range;

/// Returns the same addresses in order, with adjacent ranges joined.
pub fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Splits `ranges` into the parts inside `others` and the parts outside; both lists are in order. A range with parts in both is cut.
pub fn split(
    ranges: &[Range<usize>],
    others: &[Range<usize>],
) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut within, mut without) = (Vec::new(), Vec::new());
    let mut first = 0;
    for range in ranges {
        while others
            .get(first)
            .is_some_and(|other| other.end <= range.start)
        {
            first += 1;
        }
        let mut at = range.start;
        for other in others.iter().skip(first) {
            if other.start >= range.end {
                break;
            }
            let (start, end) = (other.start.max(at), other.end.min(range.end));
            if at < start {
                without.push(at..start);
            }
            if start < end {
                within.push(start..end);
            }
            at = at.max(end);
        }
        if at < range.end {
            without.push(at..range.end);
        }
    }
    (within, without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(joined(vec![5..7, 0..2, 2..3, 6..9, 4..4]), [0..3, 5..9]);
    }

    #[test]
    fn every_address_is_on_one_side() {
        // By hand, over all of 16 addresses.
        for pattern in 0u32..1 << 10 {
            let others: Vec<Range<usize>> = joined(
                (0..10)
                    .filter(|bit| pattern >> bit & 1 != 0)
                    .map(|bit| bit..bit + 1)
                    .collect(),
            );
            let ranges = [0..3, 3..4, 6..10];
            let (within, without) = split(&ranges, &others);
            for address in 0..10 {
                let is = |ranges: &[Range<usize>]| {
                    ranges
                        .iter()
                        .filter(|range| range.contains(&address))
                        .count()
                };
                let (here, there) = (is(&ranges), is(&others));
                assert_eq!(
                    (is(&within), is(&without)),
                    (here * there, here * (1 - there))
                );
            }
        }
    }
}
