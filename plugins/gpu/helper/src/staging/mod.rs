//! Device memory of ranks is staged: copied to wherever the node has room, given back, and drained into their images.
//!
//! One thread, [`stager`], plans and stages for all ranks of the node that are locked, and owns what is reserved. Each rank's own connection copies
//! back and drains what is its own, with contexts of its own. A place's memory is given back as soon as no connection needs what lies in it any more:
//! one that has filled back what is its rank's, and drained what lies there, or that has ended.
//!
//! * [`stager`] - the thread
//! * [`node`] - GPUs and record of copies that it works with
//! * [`known`] - the record, as a file beside the job's epochs
//! * [`rank`] - what is done for one rank with what is staged, or with its image
//! * [`locked`] - who is waited for
//! * [`need`] - whether GPUs are needed still
//! * [`shown`] - host memory is shown to a rank

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
use stillpoint_gpu_plan::{Node, Place, Record, Source};
use stillpoint_gpu_staging::{Spot, Staged};

use stager::Order;

/// What was staged together, and what was known of the node's ways then.
pub struct Group {
    staged: Staged,
    record: Record,
    node: Node,
    /// The driver's version, as the record has it.
    version: String,
    /// The host memory in which all of it lies that is not on GPUs, and the slots of the drains.
    arena: Shown,
    pub epoch: u64,
}

/// What is reserved in one place. It is given back when nobody holds it any more.
struct Lain {
    place: Place,
    spot: Spot,
    back: mpsc::Sender<Order>,
}

impl Drop for Lain {
    fn drop(&mut self) {
        // Without the thread this process ends, and the driver takes all of it.
        let _ = self.back.send(Order::GiveBack(self.spot));
    }
}

/// A rank's part of it.
pub struct Portion {
    pub group: Arc<Group>,
    pub rank: u32,
    /// Where it lies; and host memory, for the slots of its drain.
    held: Vec<Arc<Lain>>,
}

/// What is lent, as the engine wants it.
fn sources(rank: u32, storage: &Storage) -> Vec<Source> {
    let source = |lent: &stillpoint_gpu_driver::storage::Lent| Source {
        rank,
        gpu: lent.device,
        address: lent.address,
        bytes: lent.bytes,
    };
    storage.lent.iter().map(source).collect()
}
