//! Staging of ranks' device memory: it is copied to any place with room, given back, and drained into their images.
//!
//! One thread, [`stager`], plans and stages for all locked ranks of the node, and owns the reserved memory. Each rank's own connection copies back
//! and drains the rank's memory, with contexts of its own. A place's memory is given back as soon as no connection needs it any more. A connection
//! needs it until it has filled back its rank's bytes and drained those there, or has ended.
//!
//! * [`stager`] - the thread
//! * [`node`] - the GPUs and the record of copies that it works with
//! * [`known`] - the record, as a file beside the job's epochs
//! * [`rank`] - the work for one rank with its staged memory, or with its image
//! * [`locked`] - the processes that the stager waits for
//! * [`need`] - whether GPUs are still needed
//! * [`shown`] - gives a rank access to host memory

mod known;
pub mod locked;
mod need;
pub mod node;
pub mod rank;
pub mod shown;
pub mod stager;

use std::sync::Arc;
use std::sync::mpsc;

use stillpoint_gpu_copies::arena::Shown;
use stillpoint_gpu_driver::storage::Storage;
use stillpoint_gpu_plan::{Node, Record, Source, StagingPlace};
use stillpoint_gpu_staging::{Spot, Staged};
use stillpoint_ids::{Epoch, Rank};

use stager::Order;

/// Memory that was staged together, and the speeds of the node's ways at that time.
pub struct Group {
    staged: Staged,
    record: Record,
    node: Node,
    /// The driver's version, as the record has it.
    version: String,
    /// The host memory that holds everything staged outside GPUs, and the slots of the drains.
    arena: Shown,
    pub epoch: Epoch,
}

/// The reserved memory of one place. It is given back when its last holder lets it go.
struct Lain {
    place: StagingPlace,
    spot: Spot,
    back: mpsc::Sender<Order>,
}

impl Drop for Lain {
    fn drop(&mut self) {
        // If the thread has ended, this process ends, and the driver takes back all memory.
        let _ = self.back.send(Order::GiveBack(self.spot));
    }
}

/// A rank's part of a group.
pub struct Portion {
    pub group: Arc<Group>,
    pub rank: Rank,
    /// The reserved memory of this rank, and host memory for the slots of its drain.
    held: Vec<Arc<Lain>>,
}

/// Converts lent memory into the engine's sources.
fn sources(rank: Rank, storage: &Storage) -> Vec<Source> {
    let source = |lent: &stillpoint_gpu_driver::storage::Lent| Source {
        rank,
        gpu: lent.device,
        address: lent.address,
        bytes: lent.bytes,
    };
    storage.lent.iter().map(source).collect()
}
