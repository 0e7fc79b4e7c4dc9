//! The order of turns: no way of running profits from its place.

/// Returns the order of `count` jobs in a round: forwards and backwards by turns. After both, the next job begins.
pub fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.rotate_left((round / 2) % count.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn everybody_is_as_often_at_each_place() {
        for count in 1..5 {
            let mut seen = vec![vec![0; count]; count];
            for round in 0..2 * count {
                for (place, who) in order(count, round).into_iter().enumerate() {
                    seen[place][who] += 1;
                }
            }
            assert!(seen.iter().flatten().all(|times| *times == 2), "{seen:?}");
        }
    }

    #[test]
    fn of_two_each_is_as_often_before_the_other() {
        let before = |a, b| {
            (0..8)
                .filter(|round| {
                    let order = order(4, *round);
                    order.iter().position(|who| *who == a) < order.iter().position(|who| *who == b)
                })
                .count()
        };
        for (a, b) in [(0, 1), (0, 2), (1, 3)] {
            assert_eq!(before(a, b), 4);
        }
    }
}
