//! Chooses earlier images that the next one must not need, so that it does not need too many.

use stillpoint_image::format::MAX_ORIGINS;
use stillpoint_image::{Base, Origin};

/// The most earlier epochs in which an image has chunks.
const MOST_EPOCHS: usize = 8;

/// Returns the images that the next one leaves, so that it does not need too many: those of the oldest epochs. If one epoch has too many by
/// itself, those of other ranks are among them.
pub fn too_many(base: &Base) -> Vec<Origin> {
    let newest = |image: &&Origin| (image.epoch, **image == base.image);
    let mut images: Vec<&Origin> = base.images().collect();
    images.sort_by_key(newest);
    let mut epochs: Vec<u64> = images.iter().map(|image| image.epoch).collect();
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

    use stillpoint_image::Tables;

    use super::*;

    fn left(epochs: &[u64], siblings: u32) -> Vec<(u64, u32)> {
        let tables = Tables {
            origins: epochs.iter().map(|it| Origin::of(*it, 5, 99, 0)).collect(),
            siblings: (0..siblings).collect(),
            ..Tables::default()
        };
        let base = Base::new(Origin::of(20, 5, 99, 0), Arc::new(tables));
        let left = too_many(&base);
        let named = left.iter().map(|it| (it.epoch, it.rank().unwrap_or(99)));
        named.collect()
    }

    #[test]
    fn the_oldest_images_are_left_and_then_those_of_other_ranks() {
        assert_eq!(left(&[1, 2, 3], 0), []);
        let nine: Vec<u64> = (1..=9).collect();
        assert_eq!(left(&nine, 0), [(1, 5), (2, 5)]);
        assert_eq!(left(&nine, 3), [(1, 5), (2, 5)]);
        // At most 64 stay: the image itself, and of its siblings those of the highest ranks.
        let many = left(&[7, 8], 100);
        assert_eq!(many.len(), 102 - MAX_ORIGINS);
        assert_eq!(many[..3], [(7, 5), (8, 5), (20, 0)]);
        assert!(!many.contains(&(20, 5)) && !many.contains(&(20, 99)));
    }
}
