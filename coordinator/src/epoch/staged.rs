//! Staged epochs: every block is on some tier, but not every one is on the slow tier.
//!
//! ```text
//! DIR/epoch-000013.7c1e02ab.part/   being staged
//! DIR/epoch-000013.staged/   manifest, tables of blocks, and images with holes: the fast tiers hold the rest
//! DIR/epoch-000013/          the images are whole: the epoch is durable, like any other
//! ```

use std::path::PathBuf;

use stillpoint_ids::Epoch;
use stillpoint_protocol::agent::Written;

use stillpoint_faults::Point;
use stillpoint_image::epoch_name;

use super::{Description, EpochError, Epochs, Naming, io_error};

/// The end of a staged epoch's name.
pub(super) const STAGED: &str = ".staged";

impl Epochs {
    /// The path of a staged epoch.
    pub fn staged_path(&self, epoch: Epoch) -> PathBuf {
        self.named(&staged_name(epoch))
    }

    /// The newest staged epoch that is newer than every committed one.
    pub fn newest_staged(&self) -> Result<Option<Epoch>, EpochError> {
        let listed = self.listed()?;
        let newest = listed.committed.last().copied().unwrap_or(Epoch(0));
        Ok(listed
            .staged
            .last()
            .copied()
            .filter(|staged| *staged > newest))
    }

    /// Gives an epoch whose blocks are all on some tier the name of a staged one: manifest, sync, rename, sync.
    pub fn stage(
        &self,
        epoch: Epoch,
        images: &[Written],
        about: &Description,
    ) -> Result<PathBuf, EpochError> {
        let (part, staged) = (self.mark.part(epoch), staged_name(epoch));
        let _changing = self.in_place()?;
        self.describe(&part, epoch, images, about)?;
        let _still = self.in_place()?;
        self.remove(&staged, Point::StagedClear)?;
        self.rename(&part, &staged, Naming::STAGED)?;
        // An older staged epoch is not committed and useless now, whatever becomes of this one.
        for older in self
            .listed()?
            .staged
            .into_iter()
            .filter(|older| *older < epoch)
        {
            self.discard_staged(older)?;
        }
        Ok(self.staged_path(epoch))
    }

    /// Commits a staged epoch whose images have become whole. Their writers have synced every byte.
    pub fn secure(&self, epoch: Epoch) -> Result<PathBuf, EpochError> {
        let _changing = self.in_place()?;
        self.rename(&staged_name(epoch), &epoch_name(epoch), Naming::DURABLE)?;
        Ok(self.path(epoch))
    }

    /// Removes a staged epoch that cannot be made whole.
    pub fn discard_staged(&self, epoch: Epoch) -> Result<(), EpochError> {
        let (staged, part) = (staged_name(epoch), self.mark.part(epoch));
        let _changing = self.in_place()?;
        self.remove(&part, Point::EpochDiscard)?;
        // It is renamed first: a half-removed epoch must not look like a staged one.
        match self
            .directory
            .rename(&staged, &part, Some(Point::StagedLost))
        {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(io_error(&self.named(&staged), "remove a staged epoch"))?,
        }
        self.remove(&part, Point::StagedRemove)
    }
}

/// The name of a staged epoch's directory.
pub fn staged_name(epoch: Epoch) -> String {
    format!("{}{STAGED}", epoch_name(epoch))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{epochs_in, written};
    use super::*;

    fn staged(epochs: &Epochs, epoch: Epoch) -> PathBuf {
        let part = epochs.prepare(epoch).unwrap();
        let images = [written(&part, 0, 10)];
        epochs
            .stage(epoch, &images, &Description::default())
            .unwrap()
    }

    #[test]
    fn a_staged_epoch_is_not_committed_until_it_is_secured() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        let path = staged(&epochs, Epoch(1));
        assert!(path.join("manifest").exists());
        assert!(epochs.committed().unwrap().is_empty());
        assert_eq!(epochs.newest_staged().unwrap(), Some(Epoch(1)));
        epochs.remove_parts().unwrap();
        assert_eq!(epochs.newest_staged().unwrap(), Some(Epoch(1)));
        epochs.secure(Epoch(1)).unwrap();
        assert_eq!(epochs.committed().unwrap(), [1].map(Epoch));
        assert_eq!(epochs.newest_staged().unwrap(), None);
    }

    #[test]
    fn what_was_staged_before_goes_and_what_is_committed_stays() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        staged(&epochs, Epoch(1));
        epochs.secure(Epoch(1)).unwrap();
        staged(&epochs, Epoch(2));
        staged(&epochs, Epoch(3));
        assert!(!epochs.staged_path(Epoch(2)).exists());
        assert_eq!(epochs.committed().unwrap(), [1].map(Epoch));
        epochs.discard_staged(Epoch(3)).unwrap();
        epochs.discard_staged(Epoch(3)).unwrap();
        assert_eq!(epochs.newest_staged().unwrap(), None);
        staged(&epochs, Epoch(4));
        let part = epochs.prepare(Epoch(5)).unwrap();
        epochs
            .commit(Epoch(5), &[written(&part, 0, 3)], &Description::default())
            .unwrap();
        assert!(epochs.prune(2).is_empty());
        assert!(
            !epochs.staged_path(Epoch(4)).exists(),
            "older than a committed epoch"
        );
    }
}
