//! Names of sets of ranks.

use stillpoint_ids::Rank;

/// A set of ranks in the shortest words: "rank 3", "ranks 0-2, 5", "all 4 ranks".
pub fn ranks_in_words(ranks: &[Rank], size: usize) -> String {
    if ranks.len() == size && size > 1 {
        return format!("all {size} ranks");
    }
    let mut words = String::new();
    let mut rest = ranks;
    while let [Rank(first), ..] = rest {
        let run = rest
            .iter()
            .zip(*first..)
            .take_while(|(rank, expected)| rank.0 == *expected)
            .count();
        if !words.is_empty() {
            words.push_str(", ");
        }
        let last = rest[run - 1];
        words.push_str(&match run {
            1 => first.to_string(),
            2 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        });
        rest = &rest[run..];
    }
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_ranks_are_short_in_words() {
        assert_eq!(ranks_in_words(&[3].map(Rank), 8), "rank 3");
        assert_eq!(
            ranks_in_words(&[0, 1, 2, 5, 7].map(Rank), 9),
            "ranks 0-2, 5, 7"
        );
        assert_eq!(ranks_in_words(&[4, 5].map(Rank), 9), "ranks 4, 5");
        assert_eq!(ranks_in_words(&[0, 1].map(Rank), 2), "all 2 ranks");
        assert_eq!(ranks_in_words(&[0].map(Rank), 1), "rank 0");
    }
}
