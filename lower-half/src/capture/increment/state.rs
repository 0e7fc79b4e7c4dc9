//! The state of an increment: the images before, the model's decision, and what is compared. Pure.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use stillpoint_gpu_messages::Hashers;
use stillpoint_image::delta::Unchanged;
use stillpoint_image::{Base, Origin};
use stillpoint_incremental::blocks::{BlockHashTable, BlockSize, Counts};
use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{OfDevices, Plan, RegionChanges};

use super::devices::Known;

/// The earlier images that this one builds on.
#[derive(Default)]
pub struct Earlier {
    pub base: Option<Base>,
    /// Images that the next one must not need.
    pub left: Vec<Origin>,
    /// Memory that stays in earlier images.
    pub kept: Vec<Range<usize>>,
}

/// The model's decision.
#[derive(Default)]
pub struct Choice {
    /// The way in which writes are tracked, or `None` if that does not matter.
    pub tracking: Option<Tracking>,
    /// How each of the model's regions is written, or `None` if the image is whole and there was no choice.
    pub plan: Option<(Plan, BTreeMap<u64, RegionChanges>)>,
}

/// Memory that is compared, block by block.
pub struct Comparison {
    /// The part of the increment's memory that is compared before it is written.
    pub ranges: Vec<Range<usize>>,
    /// The hashes that blocks are compared with.
    pub before: Arc<BlockHashTable>,
    /// The hashes of the next image's blocks.
    pub now: BlockHashTable,
    pub counts: BTreeMap<u64, Counts>,
    /// The number of compared stretches that do not stay in earlier images.
    pub stretches: usize,
}

impl Comparison {
    /// Compares nothing; the blocks that are written are hashed for the next image.
    pub fn of_nothing(block: BlockSize) -> Comparison {
        Comparison {
            ranges: Vec::new(),
            before: Arc::new(BlockHashTable::new(block)),
            now: BlockHashTable::new(block),
            counts: BTreeMap::new(),
            stretches: 0,
        }
    }
}

/// Devices' memory, compared by the hashes of its blocks.
#[derive(Default)]
pub struct DeviceComparison {
    /// The hashers, if it is compared.
    pub hashers: Option<Hashers>,
    /// The hashes in the base, and in the next image.
    pub before: Arc<Known>,
    pub now: Known,
    /// Memory that stays in earlier images.
    pub unchanged: Vec<Unchanged>,
    /// The outcome, or `None` if there is no such memory.
    pub outcome: Option<OfDevices>,
}
