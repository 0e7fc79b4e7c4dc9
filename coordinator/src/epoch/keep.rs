//! Decides which epochs stay: the newest, and those that they need.
//!
//! An epoch may have chunks in earlier ones ([`Manifest::needs`]). Each of those stays, whole, as long as one of the newest `keep`, or a newer staged epoch,
//! needs it. The needs of a needed epoch count for nothing, since others only use its own chunks. So an epoch that stays only because it is needed may lack
//! an epoch that it needs itself. It can then not be restarted; the newest `keep` can. The writers bound the number of needed epochs.

use std::collections::BTreeSet;

use stillpoint_faults::Point;
use stillpoint_ids::Epoch;
use stillpoint_image::{Manifest, epoch_name};
use stillpoint_protocol::agent::Written;

use super::{Changing, EpochError, Epochs, Listed, io_error, staged_name};

/// Directories that are not epochs any more, but still take room.
#[derive(Debug, Default)]
pub struct Retired {
    /// Their names, with the fault point of their removal.
    parts: Vec<(String, Point)>,
    staged: Vec<Epoch>,
    /// Held until they are removed.
    changing: Changing,
}

impl Epochs {
    /// Takes the oldest committed epochs beyond `keep` that no other one needs out of the list, which is quick. [`Epochs::clear`] then removes their data,
    /// and parts that are older than the newest epoch; this may take long. Errors are returned beside the result, since they are no reason to fail a commit.
    pub fn retire(&self, keep: usize) -> (Retired, Vec<EpochError>) {
        let mut retired = Retired::default();
        let listed = self.in_place().and_then(|changing| {
            retired.changing = changing;
            self.listed()
        });
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return (retired, vec![error]),
        };
        let newest = listed.committed.last().copied().unwrap_or(Epoch(0));
        let (surplus, unknown) = match self.surplus(&listed, keep) {
            Ok(surplus) => (surplus, None),
            // The needs of this epoch are unknown, so it may need any other.
            Err(error) => (vec![], Some(error)),
        };
        let mut errors: Vec<EpochError> = unknown.into_iter().collect();
        for epoch in surplus {
            // It is renamed first: a half-removed epoch must not look like an epoch.
            let part = self.mark.part(epoch);
            let renamed = self
                .directory
                .rename(&epoch_name(epoch), &part, Some(Point::PruneRename))
                .map_err(io_error(&self.path(epoch), "remove an older epoch"));
            match renamed {
                Ok(()) => retired.parts.push((part, Point::PruneRemove)),
                Err(error) => errors.push(error),
            }
        }
        let stale = listed
            .parts
            .into_iter()
            .filter(|(epoch, _)| *epoch < newest);
        let stale = stale.map(|(_, name)| (name, Point::PrunePart));
        retired.parts.extend(stale);
        let overtaken = listed.staged.into_iter().filter(|epoch| *epoch < newest);
        retired.staged.extend(overtaken);
        (retired, errors)
    }

    /// Removes these directories. Returns the errors.
    pub fn clear(&self, retired: Retired) -> Vec<EpochError> {
        let parts = retired.parts.iter();
        let parts = parts.map(|(name, point)| self.remove(name, *point));
        let staged = retired.staged.iter();
        let staged = staged.map(|epoch| self.discard_staged(*epoch));
        parts.chain(staged).filter_map(Result::err).collect()
    }

    /// Retires and clears at once.
    #[cfg(test)]
    pub fn prune(&self, keep: usize) -> Vec<EpochError> {
        let (retired, mut errors) = self.retire(keep);
        errors.extend(self.clear(retired));
        errors
    }

    /// The committed epochs that are removed.
    fn surplus(&self, listed: &Listed, keep: usize) -> Result<Vec<Epoch>, EpochError> {
        let (old, kept) = kept_for_itself(&listed.committed, keep);
        if old.is_empty() {
            return Ok(vec![]);
        }
        // A staged epoch may still become durable.
        let newest = kept.last().copied().unwrap_or(Epoch(0));
        let staged = listed.staged.iter().filter(|epoch| **epoch > newest);
        let names = kept.iter().map(|epoch| epoch_name(*epoch));
        let names = names.chain(staged.map(|epoch| staged_name(*epoch)));
        let mut needed = BTreeSet::new();
        for name in names {
            let epoch = self.directory.below(&name);
            let epoch =
                epoch.map_err(io_error(&self.named(&name), "open the epoch's directory"))?;
            needed.extend(Manifest::read_in(&epoch)?.needs);
        }
        let gone = old.iter().copied();
        Ok(gone.filter(|epoch| !needed.contains(epoch)).collect())
    }

    /// The epochs that an epoch with these images needs. All of them have to be committed.
    pub(super) fn needs_of(
        &self,
        epoch: Epoch,
        images: &[Written],
    ) -> Result<Vec<Epoch>, EpochError> {
        let needs: BTreeSet<Epoch> = images
            .iter()
            .flat_map(|image| &image.needs)
            .copied()
            .collect();
        if !needs.is_empty() {
            let committed = self.committed()?;
            let missing = needs.iter().find(|needed| !committed.contains(needed));
            if let Some(needed) = missing.copied() {
                let path = self.directory.path().to_owned();
                return Err(EpochError::Base {
                    path,
                    epoch,
                    needed,
                });
            }
        }
        Ok(needs.into_iter().collect())
    }
}

/// Splits the epochs into older ones and the newest `keep`, at least one.
fn kept_for_itself(committed: &[Epoch], keep: usize) -> (&[Epoch], &[Epoch]) {
    committed.split_at(committed.len().saturating_sub(keep.max(1)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use stillpoint_ids::Rank;
    use stillpoint_image::{Manifest, image_name};

    use super::super::Description;
    use super::super::tests::{epochs_in, written};
    use super::*;

    fn images(part: &Path, needs: &[&[Epoch]]) -> Vec<Written> {
        let image = |(rank, needs): (u32, &&[Epoch])| Written {
            needs: needs.to_vec(),
            ..written(part, rank, 10)
        };
        (0..).zip(needs).map(image).collect()
    }

    /// Commits an epoch whose ranks need others.
    fn commit(epochs: &Epochs, epoch: Epoch, needs: &[&[Epoch]]) -> Result<Manifest, EpochError> {
        let part = epochs.prepare(epoch)?;
        let images = images(&part, needs);
        let path = epochs.commit(epoch, &images, &Description::default())?;
        Ok(Manifest::read(&path)?)
    }

    #[test]
    fn an_epoch_needs_what_any_of_its_images_needs() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        for epoch in (1..=3).map(Epoch) {
            let manifest = commit(&epochs, epoch, &[&[], &[]]).unwrap();
            assert!(manifest.needs.is_empty());
        }
        let manifest = commit(
            &epochs,
            Epoch(4),
            &[&[Epoch(1), Epoch(3)], &[], &[Epoch(2), Epoch(3)]],
        )
        .unwrap();
        assert_eq!(manifest.needs, [1, 2, 3].map(Epoch));
    }

    #[test]
    fn what_a_kept_epoch_needs_stays_until_nobody_needs_it() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        let after = |epoch: Epoch, needs: &[Epoch]| {
            commit(&epochs, epoch, &[&[], needs]).unwrap();
            assert!(epochs.prune(2).is_empty());
            epochs.committed().unwrap()
        };
        assert_eq!(after(Epoch(1), &[]), [1].map(Epoch));
        assert_eq!(after(Epoch(2), &[Epoch(1)]), [1, 2].map(Epoch));
        assert_eq!(after(Epoch(3), &[Epoch(1), Epoch(2)]), [1, 2, 3].map(Epoch));
        assert_eq!(
            after(Epoch(4), &[Epoch(2), Epoch(3)]),
            [1, 2, 3, 4].map(Epoch),
            "3 needs 1"
        );
        // Epoch 3 is only needed now, so its own need of 1 does not count.
        assert_eq!(after(Epoch(5), &[Epoch(3)]), [2, 3, 4, 5].map(Epoch));
        assert_eq!(after(Epoch(6), &[]), [3, 5, 6].map(Epoch));
        assert_eq!(after(Epoch(7), &[]), [6, 7].map(Epoch));
    }

    #[test]
    fn what_is_not_there_is_not_built_upon() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        commit(&epochs, Epoch(1), &[&[]]).unwrap();
        let error = commit(&epochs, Epoch(3), &[&[Epoch(1)], &[Epoch(2)]])
            .unwrap_err()
            .to_string();
        assert!(error.contains("epoch 3 needs epoch 2"), "{error}");
        let part = epochs.prepare(Epoch(4)).unwrap();
        let images = images(&part, &[&[Epoch(2)]]);
        let staged = epochs.stage(Epoch(4), &images, &Description::default());
        let error = staged.unwrap_err().to_string();
        assert!(error.contains("epoch 4 needs epoch 2"), "{error}");
        assert_eq!(epochs.committed().unwrap(), [1].map(Epoch));
    }

    #[test]
    fn what_a_staged_epoch_needs_stays() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        for epoch in (1..=4).map(Epoch) {
            commit(&epochs, epoch, &[&[]]).unwrap();
        }
        let part = epochs.prepare(Epoch(5)).unwrap();
        let images = images(&part, &[&[Epoch(2)]]);
        epochs
            .stage(Epoch(5), &images, &Description::default())
            .unwrap();
        assert!(epochs.prune(1).is_empty());
        assert_eq!(epochs.committed().unwrap(), [2, 4].map(Epoch));
        epochs.secure(Epoch(5)).unwrap();
        assert!(epochs.prune(1).is_empty());
        assert_eq!(epochs.committed().unwrap(), [2, 5].map(Epoch));
    }

    #[test]
    fn nothing_goes_while_it_is_not_known_what_a_kept_epoch_needs() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        for epoch in (1..=3).map(Epoch) {
            commit(&epochs, epoch, &[&[]]).unwrap();
        }
        let manifest = epochs.path(Epoch(3)).join("manifest");
        let sound = fs::read(&manifest).unwrap();
        fs::write(&manifest, b"no manifest").unwrap();
        let said: Vec<String> = epochs.prune(2).iter().map(EpochError::to_string).collect();
        assert!(
            said.len() == 1 && said[0].contains("epoch-000003/manifest"),
            "{said:?}"
        );
        assert_eq!(epochs.committed().unwrap(), [1, 2, 3].map(Epoch));
        fs::write(&manifest, sound).unwrap();
        assert!(epochs.prune(2).is_empty());
        assert_eq!(epochs.committed().unwrap(), [2, 3].map(Epoch));
        // The manifest of an epoch that is removed itself does not matter.
        fs::remove_file(epochs.path(Epoch(2)).join("manifest")).unwrap();
        assert!(epochs.prune(1).is_empty());
        assert!(!epochs.path(Epoch(2)).join(image_name(Rank(0))).exists());
    }

    /// With any needs, the newest epochs stay, and those that they need.
    #[test]
    fn no_kept_epoch_ever_lacks_anything() {
        for seed in 1..=20_u64 {
            let directory = tempfile::tempdir().unwrap();
            let epochs = epochs_in(directory.path());
            let mut state = seed;
            let mut random = move |below: u64| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 33) % below
            };
            let keep = 1 + random(3) as usize;
            let mut kept: Vec<Epoch> = vec![];
            for epoch in (1..=12).map(Epoch) {
                // A real writer does the same: an epoch needs the newest one, and some of those that it needs.
                let newest = kept.last().copied();
                let mut needs: Vec<Epoch> = newest.map_or(vec![], |newest| {
                    Manifest::read(&epochs.path(newest)).unwrap().needs
                });
                needs.retain(|_| random(3) > 0);
                needs.extend(newest.filter(|_| random(5) > 0));
                let needs = &needs[needs.len().saturating_sub(3)..];
                commit(&epochs, epoch, &[needs]).unwrap();
                assert!(epochs.prune(keep).is_empty());
                kept = epochs.committed().unwrap();
                assert!(kept.len() <= keep * 4);
                for whole in kept.iter().rev().take(keep) {
                    let needs = Manifest::read(&epochs.path(*whole)).unwrap().needs;
                    assert!(
                        needs.iter().all(|needed| kept.contains(needed)),
                        "seed {seed}"
                    );
                }
            }
        }
    }
}
