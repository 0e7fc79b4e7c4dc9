//! Storage tiers as the destination of an image.

use std::path::Path;
use std::sync::Arc;

use stillpoint_faults::{Point, strike};
use stillpoint_ids::Epoch;
use stillpoint_image::store::Store;
use stillpoint_protocol::agent::{Progress, Written};
use stillpoint_protocol::tier::Assignment;
use stillpoint_refusals::{Coded, Refusal, refusal};

use super::super::destination::Destination;
use super::Staging;
use super::error::StagingError;
use super::image::{Image, Staged};

/// The tiers of one image, each with its share of it.
pub struct Tiers {
    staging: Staging,
    attempt: u64,
    epoch: Epoch,
    assignment: Assignment,
    image: Option<Arc<Image>>,
}

impl Staging {
    /// Returns the destination of an image with this plan.
    pub fn destination(&self, attempt: u64, epoch: Epoch, assignment: Assignment) -> Tiers {
        Tiers {
            staging: self.clone(),
            attempt,
            epoch,
            assignment,
            image: None,
        }
    }
}

impl Destination for Tiers {
    fn open(&mut self, path: &Path) -> Result<Option<Box<dyn Store>>, Refusal> {
        strike(Point::Stage).map_err(|error| refusal!(FaultPoint, "{error}"))?;
        let (attempt, epoch) = (self.attempt, self.epoch);
        let staged = self.staging.stage(attempt, epoch, path, &self.assignment);
        let failed = |error: StagingError| refusal!(TierFailed, "{error}");
        let (image, lanes) = staged.map_err(failed)?;
        self.image = Some(image);
        Ok(Some(Box::new(lanes)))
    }

    fn close(&mut self, path: &Path, written: Written) -> Result<Progress, Refusal> {
        let image = self.image.take();
        let image = image.ok_or_else(|| refusal!(Internal, "it was not opened"))?;
        let Staged {
            blocks,
            moved,
            rates,
        } = image.staged();
        blocks
            .write(&path.with_extension("blocks"))
            .map_err(|error| error.refusal())?;
        self.staging.learn(rates);
        Ok(Progress::Staged(written, moved))
    }
}
