//! The owner of an epoch: the job that its manifest names.

use stillpoint_faults::Point;
use stillpoint_ids::Epoch;
use stillpoint_image::{Manifest, epoch_name};

use super::{EpochError, Epochs, Mark, io_error, staged_name};

impl Epochs {
    /// Returns the newest epoch, committed or staged, of a job, and its directory's name. `is_its` gets the id of the epoch's job, or `None` if the manifest
    /// cannot be read.
    pub fn newest_of(
        &self,
        is_its: impl Fn(Option<&str>) -> bool,
    ) -> Result<Option<(Epoch, String)>, EpochError> {
        let staged = self.newest_staged()?.into_iter();
        let staged = staged.map(|epoch| (epoch, staged_name(epoch)));
        let committed = self.committed()?.into_iter().rev();
        let committed = committed.map(|epoch| (epoch, epoch_name(epoch)));
        let mut all = staged.chain(committed);
        Ok(all.find(|(_, name)| is_its(self.job_of(name).as_deref())))
    }

    /// Returns the newest committed epoch of a job. An epoch whose manifest cannot be read counts.
    pub fn newest_committed_of(
        &self,
        is_its: impl Fn(&str) -> bool,
    ) -> Result<Option<Epoch>, EpochError> {
        let its = |epoch: &Epoch| {
            let job = self.job_of(&epoch_name(*epoch));
            job.is_none_or(|job| is_its(&job))
        };
        Ok(self.committed()?.into_iter().rev().find(its))
    }

    /// Renames all epochs to parts, which are then removed with those of unfinished checkpoints.
    pub fn give_up_all(&self) -> Result<(), EpochError> {
        let listed = self.listed()?;
        let committed = listed.committed.into_iter();
        let committed = committed.map(|epoch| (epoch, epoch_name(epoch)));
        let staged = listed.staged.into_iter();
        let staged = staged.map(|epoch| (epoch, staged_name(epoch)));
        for (epoch, name) in committed.chain(staged) {
            let part = Mark::random().map_err(io_error(&self.named(&name), "remove it"))?;
            self.directory
                .rename(&name, &part.part(epoch), Some(Point::PruneRename))
                .map_err(io_error(&self.named(&name), "remove it"))?;
        }
        Ok(())
    }

    fn job_of(&self, name: &str) -> Option<String> {
        let epoch = self.directory.below(name).ok()?;
        Some(Manifest::read_in(&epoch).ok()?.job)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{epochs_in, written};
    use super::super::{Description, Mark};
    use super::*;

    #[test]
    fn an_epoch_belongs_to_the_job_that_wrote_it() {
        let directory = tempfile::tempdir().unwrap();
        let epochs = epochs_in(directory.path());
        for (epoch, job) in [(Epoch(1), "one"), (Epoch(2), "one"), (Epoch(3), "other")] {
            let part = epochs.prepare(epoch).unwrap();
            let about = Description {
                job: job.to_owned(),
                ..Description::default()
            };
            epochs
                .commit(epoch, &[written(&part, 0, 3)], &about)
                .unwrap();
        }
        let newest = |job| {
            let newest = epochs.newest_of(|its| its == Some(job)).unwrap();
            newest.map(|(epoch, _)| epoch)
        };
        assert_eq!(
            (newest("one"), newest("other")),
            (Some(Epoch(2)), Some(Epoch(3)))
        );
        assert_eq!(newest("third"), None);
        let committed = epochs.newest_committed_of(|job| job == "one").unwrap();
        assert_eq!(committed, Some(Epoch(2)));
        std::fs::write(epochs.path(Epoch(3)).join("manifest"), "torn").unwrap();
        let unknown = epochs.newest_of(|its| its.is_none()).unwrap();
        assert_eq!(unknown, Some((Epoch(3), epoch_name(Epoch(3)))));
        epochs.give_up_all().unwrap();
        assert!(epochs.committed().unwrap().is_empty());
        epochs.remove_parts().unwrap();
        assert!(epochs.directory.names().unwrap().is_empty());
        assert_eq!(Mark::none().part(Epoch(1)), "epoch-000001..part");
    }
}
