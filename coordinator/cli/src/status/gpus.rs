//! The row of `status` about the memory of GPUs: the times of the newest epoch's copies beside their predictions.

use std::path::Path;

use stillpoint_gpu_plan::record::{Leg, Newest};
use stillpoint_multilevel::units::show_seconds;

use crate::copies;
use crate::units::bytes;

/// Reads the checkpoint directory's record of copies. Returns `None` if it has none.
pub fn newest(directory: &Path) -> Option<Newest> {
    copies::record(directory)?.newest()
}

pub fn in_words(newest: &Newest) -> String {
    let leg = |leg: Leg, what: &str| {
        let expected = leg.predicted.map_or_else(
            || "nothing expected".to_owned(),
            |said| format!("{} expected", show_seconds(said)),
        );
        let (size, took) = (bytes(leg.bytes), show_seconds(leg.seconds));
        format!("{size} {what} in {took} ({expected})")
    };
    let legs = [(newest.staged, "staged"), (newest.back, "back")];
    let said = legs.map(|(of, what)| of.map(|of| leg(of, what)));
    let said: Vec<String> = said.into_iter().flatten().collect();
    format!("epoch {}: {}", newest.epoch, said.join(", "))
}

#[cfg(test)]
mod tests {
    use stillpoint_ids::Epoch;

    use super::*;

    #[test]
    fn both_ways_are_told_beside_what_was_expected() {
        let leg = |bytes, predicted| Leg {
            bytes,
            seconds: 0.5,
            predicted,
        };
        let mut newest = Newest {
            epoch: Epoch(7),
            staged: Some(leg(2_000_000, Some(0.25))),
            back: None,
        };
        let text = in_words(&newest);
        assert!(text.starts_with("epoch 7: "), "{text}");
        assert!(
            text.ends_with("staged in 500 ms (250 ms expected)"),
            "{text}"
        );
        newest.back = Some(leg(3_000_000, None));
        let text = in_words(&newest);
        assert!(
            text.ends_with("back in 500 ms (nothing expected)"),
            "{text}"
        );
    }
}
