//! In how many streams a number of bytes is copied, and in slots of what size: what the fitted model says is fastest.
//!
//! The model and its fit are `stillpoint_multilevel::interval`'s: what is fixed, what a stream, a copy and a byte cost.

use serde::Serialize;
use stillpoint_multilevel::interval::{Model, Sample};

/// Streams that are worth asking about.
pub const STREAMS: std::ops::RangeInclusive<u32> = 1..=16;

/// Sizes of slots of pinned host memory, and of single copies.
pub const SLOTS: [u64; 5] = [4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20];

/// How something is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Copies {
    pub streams: u32,
    /// Bytes of one copy.
    pub slot: u64,
}

/// Before anything was measured: enough streams to keep a copy engine busy while another copy is begun.
pub const UNMEASURED: Copies = Copies {
    streams: 4,
    slot: 16 << 20,
};

impl Copies {
    /// The fastest way to copy that many bytes; of several, the one with the fewest streams and the smallest slots.
    pub fn fastest(model: &Model, bytes: u64) -> Copies {
        let mut best = (f64::INFINITY, UNMEASURED);
        for streams in STREAMS {
            for slot in SLOTS {
                let copies = Copies { streams, slot };
                let seconds = copies.seconds(model, bytes);
                if seconds < best.0 {
                    best = (seconds, copies);
                }
            }
        }
        best.1
    }

    /// A copy made in this way that took so long.
    pub fn sample(self, bytes: u64, seconds: f64) -> Sample {
        Sample {
            size: bytes as f64,
            streams: self.streams,
            seconds,
            slot: Some(self.slot as f64),
        }
    }

    /// What the model says that it takes.
    pub fn seconds(self, model: &Model, bytes: u64) -> f64 {
        match bytes {
            0 => 0.0,
            _ => model.time_in_slots(bytes as f64, self.streams, Some(self.slot as f64)),
        }
    }
}

/// Copies that are measured on a way that has none yet: size, streams, slot. Three sizes with four numbers of streams tell everything
/// that the model has to know, in a second or so on a slow bus.
pub fn probes() -> impl Iterator<Item = (u64, Copies)> {
    [
        (4 << 20, 4 << 20),
        (32 << 20, 4 << 20),
        (128 << 20, 16 << 20),
    ]
    .into_iter()
    .flat_map(|(size, slot)| [1, 2, 4, 8].map(|streams| (size, Copies { streams, slot })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stillpoint_multilevel::interval::{
        CHECKPOINT, ELEMENTS, RESTART, STREAMS as OF_TABLES, fit, samples,
    };

    /// How often the model fitted to a table names the number of streams that is best in it, and how much slower its choice is at most.
    fn named_best(table: &[[f64; 3]; 15]) -> (usize, f64) {
        let model = fit(&samples(table)).expect("a table");
        let (mut right, mut slower) = (0, 0.0f64);
        for (&size, row) in ELEMENTS.iter().zip(table) {
            let said = |at: &usize| model.time(size as f64, OF_TABLES[*at]);
            let chosen = (0..3)
                .min_by(|a, b| said(a).total_cmp(&said(b)))
                .expect("three");
            let best = row.iter().copied().fold(f64::INFINITY, f64::min);
            right += usize::from(row[chosen] == best);
            slower = slower.max(row[chosen] / best - 1.0);
        }
        (right, slower)
    }

    #[test]
    fn the_models_of_the_papers_tables_name_the_best_number_of_streams_but_where_it_hardly_matters()
    {
        let (checkpoint, restart) = (named_best(&CHECKPOINT), named_best(&RESTART));
        assert!(checkpoint.0 >= 13 && checkpoint.1 < 0.026, "{checkpoint:?}");
        assert!(restart.0 >= 13 && restart.1 < 0.01, "{restart:?}");
    }

    /// A bus of 24 GB/s that one stream fills to three quarters, 20 us to begin with, 8 us a copy, 5 us a stream.
    fn bus() -> Model {
        Model {
            fixed: 28e-6,
            per_stream: 5e-6,
            per_copy: 8e-6,
            visible: 1.0 / 24e9,
            hidden: 1.0 / 72e9,
        }
    }

    #[test]
    fn a_dozen_probes_tell_the_model_and_it_chooses_more_streams_for_more_bytes() {
        let model = bus();
        let sample =
            |(size, copies): (u64, Copies)| copies.sample(size, copies.seconds(&model, size));
        let samples: Vec<Sample> = probes().map(sample).collect();
        assert_eq!(samples.len(), 12);
        let fitted = fit(&samples).expect("a dozen");
        let mut streams = 0;
        for megabytes in [1u64, 16, 256, 4096] {
            let bytes = megabytes << 20;
            let copies = Copies::fastest(&fitted, bytes);
            assert_eq!(copies, Copies::fastest(&model, bytes));
            assert!(copies.streams >= streams && SLOTS.contains(&copies.slot));
            streams = copies.streams;
            // Nothing that could have been chosen is faster.
            for other in STREAMS {
                for slot in SLOTS {
                    let other = Copies {
                        streams: other,
                        slot,
                    };
                    assert!(other.seconds(&model, bytes) >= copies.seconds(&model, bytes));
                }
            }
        }
        assert!(streams > 4, "{streams} for 4 GiB");
        assert_eq!(Copies::fastest(&fitted, 1).streams, 1);
    }
}
