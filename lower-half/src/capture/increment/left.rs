//! Chooses earlier images that the next one must not need: it would need too many, or so little of them that the epoch is not worth keeping.

use std::collections::BTreeMap;

use stillpoint_ids::Epoch;
use stillpoint_image::format::MAX_ORIGINS;
use stillpoint_image::{Base, Origin};

/// The most earlier epochs in which an image has chunks.
const MOST_EPOCHS: usize = 8;

/// The most bytes of an earlier epoch that are written again, so that the epoch can go.
const LITTLE: u64 = 1 << 20;

/// Returns the images that the next one leaves.
pub fn left(base: &Base) -> Vec<Origin> {
    let mut left = too_many(base);
    left.extend(too_little(base));
    left
}

/// Returns the images of epochs that hold little of this rank's memory, devices' memory included. The newest epoch is kept for now:
/// otherwise every small increment would be written twice.
fn too_little(base: &Base) -> impl Iterator<Item = Origin> {
    let mut held = BTreeMap::<Epoch, u64>::new();
    for share in base.tables.shares() {
        *held.entry(share.epoch).or_default() += share.bytes;
    }
    let is_little = move |image: &&Origin| held.get(&image.epoch).is_some_and(|it| *it <= LITTLE);
    base.tables.origins.iter().filter(is_little).cloned()
}

/// Returns the images that the next one leaves, so that it does not need too many: those of the oldest epochs. If one epoch has too many by
/// itself, those of other ranks are among them.
fn too_many(base: &Base) -> Vec<Origin> {
    let newest = |image: &&Origin| (image.epoch, **image == base.image);
    let mut images: Vec<&Origin> = base.images().collect();
    images.sort_by_key(newest);
    let mut epochs: Vec<Epoch> = images.iter().map(|image| image.epoch).collect();
    epochs.dedup();
    let oldest = epochs.len().saturating_sub(MOST_EPOCHS);
    let surplus = images.len().saturating_sub(MAX_ORIGINS);
    let is_left = |(number, image): &(usize, &Origin)| {
        *number < surplus || epochs[..oldest].contains(&image.epoch)
    };
    let left = images.into_iter().enumerate().filter(is_left);
    left.map(|(_, image)| image.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stillpoint_ids::Rank;
    use stillpoint_image::Tables;
    use stillpoint_image::format::{ChunkRecord, RunRecord};

    use super::*;

    fn surplus(epochs: &[u64], siblings: u32) -> Vec<(u64, u32)> {
        let tables = Tables {
            origins: epochs
                .iter()
                .map(|it| Origin::of(Epoch(*it), Rank(5), 99, 0))
                .collect(),
            siblings: Rank::all(siblings).collect(),
            ..Tables::default()
        };
        let base = Base::new(Origin::of(Epoch(20), Rank(5), 99, 0), Arc::new(tables));
        let left = too_many(&base);
        let named = left
            .iter()
            .map(|it| (it.epoch.0, it.rank().map_or(99, |rank| rank.0)));
        named.collect()
    }

    #[test]
    fn the_oldest_images_are_left_and_then_those_of_other_ranks() {
        assert_eq!(surplus(&[1, 2, 3], 0), []);
        let nine: Vec<u64> = (1..=9).collect();
        assert_eq!(surplus(&nine, 0), [(1, 5), (2, 5)]);
        assert_eq!(surplus(&nine, 3), [(1, 5), (2, 5)]);
        // At most 64 stay: the image itself, and of its siblings those of the highest ranks.
        let many = surplus(&[7, 8], 100);
        assert_eq!(many.len(), 102 - MAX_ORIGINS);
        assert_eq!(many[..3], [(7, 5), (8, 5), (20, 0)]);
        assert!(!many.contains(&(20, 5)) && !many.contains(&(20, 99)));
    }

    #[test]
    fn an_epoch_that_holds_little_is_left() {
        // Epoch 1 has 1 MiB in images of two ranks, epoch 2 has more, and the newest one has little.
        let origins = [(1, 5), (1, 6), (2, 5)]
            .map(|(epoch, rank)| Origin::of(Epoch(epoch), Rank(rank), 99, 0));
        let mut tables = Tables {
            origins: origins.to_vec(),
            ..Tables::default()
        };
        for (origin, bytes) in [(0, 4096), (1, LITTLE / 2), (2, LITTLE / 2), (3, LITTLE + 1)] {
            tables.chunks.push(ChunkRecord {
                offset: 0,
                checksum: 0,
                stored_bytes: 0,
                bytes: bytes as u32,
                first_run: origin,
                runs: 1,
                codec: 0,
                origin,
            });
            tables.runs.push(RunRecord {
                address: u64::from(origin) << 32,
                bytes: bytes as u32,
                space: 0,
            });
        }
        let base = Base::new(Origin::of(Epoch(3), Rank(5), 99, 0), Arc::new(tables));
        assert_eq!(left(&base), origins[..2]);
    }
}
