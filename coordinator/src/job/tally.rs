//! The totals of a launch's checkpoints, for monitoring of many jobs.

use stillpoint_protocol::command::{CommittedEpoch, Tally};

/// The most reasons that are counted separately.
const MOST: usize = 16;
/// The name under which other reasons are counted.
const OTHER: &str = "another reason";

/// Counts a committed epoch.
pub fn committed(tally: &mut Tally, outcome: &CommittedEpoch) {
    tally.stored_bytes += outcome.stored_bytes;
    tally.stopped_seconds += outcome.stopped;
    for (phase, seconds) in &outcome.phases {
        *tally.phase_seconds.entry(phase.clone()).or_default() += seconds;
    }
}

/// Counts a checkpoint that was refused or given up.
pub fn given_up(tally: &mut Tally, reason: &str) {
    let mut kind = kind(reason);
    if tally.refusals.len() >= MOST && !tally.refusals.contains_key(kind) {
        kind = OTHER;
    }
    *tally.refusals.entry(kind.to_owned()).or_default() += 1;
}

/// The part of a reason that does not depend on the rank, the file or the process.
fn kind(reason: &str) -> &str {
    let of_ranks = reason.starts_with("rank") || reason.starts_with("all ");
    let reason = match reason.split_once(": ") {
        Some((_, rest)) if of_ranks => rest,
        _ => reason,
    };
    let special = |c: char| "/'(:;".contains(c) || c.is_ascii_digit();
    let end = reason.find(special).unwrap_or(reason.len());
    let kind = reason[..end].trim();
    if kind.is_empty() { OTHER } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_of_one_kind_whomever_it_concerns() {
        for reason in [
            "rank 1: a socket is open (descriptor 5)",
            "all 3 ranks: a socket is open",
            "a socket is open: 127.0.0.1",
        ] {
            assert_eq!(kind(reason), "a socket is open", "{reason}");
        }
        assert_eq!(kind("rank 1: /tmp/x"), OTHER);
    }

    #[test]
    fn kinds_are_few_whatever_is_said() {
        let mut tally = Tally::default();
        for letter in 'a'..='z' {
            given_up(&mut tally, &letter.to_string());
        }
        assert_eq!(tally.refusals.len(), MOST + 1);
        assert_eq!(tally.refusals.values().sum::<u64>(), 26);
    }
}
