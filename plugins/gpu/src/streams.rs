//! The number of streams and the size of slots for a copy, chosen as fastest by the fitted model.
//!
//! The model and its fit are `stillpoint_multilevel::interval`'s: a fixed cost, and the costs of a stream, a copy and a
//! byte.

use serde::Serialize;
use stillpoint_multilevel::interval::{Model, Sample};

/// The numbers of streams that are worth considering.
pub const STREAMS: std::ops::RangeInclusive<u32> = 1..=16;

/// Sizes of slots of pinned host memory, and of single copies.
pub const SLOTS: [u64; 5] = [4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20];

/// The way of copying.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Copies {
    pub streams: u32,
    /// Bytes of one copy.
    pub slot: u64,
}

/// The choice before any measurement: enough streams to keep a copy engine busy while another copy begins.
pub const UNMEASURED: Copies = Copies {
    streams: 4,
    slot: 16 << 20,
};

/// The smallest choice in host memory.
const SMALLEST: Copies = Copies {
    streams: 1,
    slot: SLOTS[0],
};

impl Copies {
    /// Returns the fastest way to copy that many bytes; of several, the one with the fewest streams and the smallest
    /// slots.
    pub fn fastest(model: &Model, bytes: u64) -> Copies {
        Copies::fastest_in(model, bytes, u64::MAX)
    }

    /// Returns the fastest choice whose slots fit into that many bytes of host memory, or the smallest of all if none
    /// fits.
    pub fn fastest_in(model: &Model, bytes: u64, room: u64) -> Copies {
        let all = STREAMS.flat_map(|streams| SLOTS.map(|slot| Copies { streams, slot }));
        let fit = all.filter(|copies| copies.slots() <= room);
        Copies::best(model, bytes, fit).unwrap_or(SMALLEST)
    }

    /// Returns the fastest number of streams for copies of a fixed size.
    pub fn fastest_of(model: &Model, bytes: u64, slot: u64) -> Copies {
        let all = STREAMS.map(|streams| Copies { streams, slot });
        Copies::best(model, bytes, all).unwrap_or(Copies { streams: 1, slot })
    }

    /// Returns the first of the fastest choices.
    fn best(model: &Model, bytes: u64, all: impl Iterator<Item = Copies>) -> Option<Copies> {
        let timed = all.map(|copies| (copies.seconds(model, bytes), copies));
        let first = timed.reduce(|best, next| if next.0 < best.0 { next } else { best });
        first.map(|(_, copies)| copies)
    }

    /// Returns the host memory for the slots. There are two for each stream, so that one is read or written while the other is copied.
    pub fn slots(self) -> u64 {
        let slots = 2 * u64::from(self.streams.max(1));
        self.slot.max(1).saturating_mul(slots)
    }

    /// Returns this choice, or a smaller one whose slots fit into that many bytes, but at least the smallest.
    #[must_use]
    pub fn within(mut self, room: u64) -> Copies {
        while self.slots() > room && (self.slot > SMALLEST.slot || self.streams > 1) {
            match self.slot > SMALLEST.slot {
                true => self.slot = (self.slot / 2).max(SMALLEST.slot),
                false => self.streams -= 1,
            }
        }
        self
    }

    /// Makes a sample of a copy that took so long.
    pub fn sample(self, bytes: u64, seconds: f64) -> Sample {
        Sample {
            size: bytes as f64,
            streams: self.streams,
            seconds,
            slot: Some(self.slot as f64),
        }
    }

    /// Predicts the seconds with the model.
    pub fn seconds(self, model: &Model, bytes: u64) -> f64 {
        match bytes {
            0 => 0.0,
            _ => model.time_in_slots(bytes as f64, self.streams, Some(self.slot as f64)),
        }
    }
}

/// Returns the copies to measure on a way without any: size, streams, slot. Three sizes with four numbers of streams determine the
/// model in about a second on a slow bus.
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

    /// Counts how often the fitted model names the best number of streams in a table, and how much slower its choice is at most.
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

    /// A bus of 24 GB/s that one stream fills to three quarters, with 20 us to begin, 8 us a copy and 5 us a stream.
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
            // No other choice is faster.
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

    #[test]
    fn what_has_little_room_goes_through_less() {
        let (model, bytes) = (bus(), 4 << 30);
        let free = Copies::fastest(&model, bytes);
        for room in [0u64, 8 << 20, 20 << 20, 100 << 20, 1 << 30, 1 << 40] {
            let chosen = Copies::fastest_in(&model, bytes, room);
            assert!(
                chosen.slots() <= room || chosen == SMALLEST,
                "{chosen:?} in {room}"
            );
            assert!(chosen.seconds(&model, bytes) >= free.seconds(&model, bytes));
            let cut = UNMEASURED.within(room);
            assert!(cut.slots() <= room || cut == SMALLEST, "{cut:?} in {room}");
        }
        assert_eq!(Copies::fastest_in(&model, bytes, 1 << 40), free);
        assert_eq!(UNMEASURED.within(1 << 40), UNMEASURED);
        // For copies of a fixed size, only the streams are chosen.
        let of = Copies::fastest_of(&model, bytes, 1 << 20);
        let all = STREAMS.map(|streams| {
            Copies {
                streams,
                slot: 1 << 20,
            }
            .seconds(&model, bytes)
        });
        let least = all.fold(f64::INFINITY, f64::min);
        assert_eq!((of.slot, of.seconds(&model, bytes)), (1 << 20, least));
    }
}
