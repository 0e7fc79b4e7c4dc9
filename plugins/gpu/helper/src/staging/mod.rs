//! Device memory of ranks is staged: copied to wherever the node has room, given back, and drained into their images.
//!
//! One thread, [`stager`], plans and stages for all ranks of the node that are locked, and owns what is reserved. Each rank's own connection copies
//! back and drains what is its own, with contexts of its own. What is staged together is given back together, as soon as no connection holds any
//! part of it: a rank that is done, or dies, ends its connections.
//!
//! * [`stager`] - the thread
//! * [`node`] - GPUs and record of copies that it works with
//! * [`rank`] - what is done for one rank with what is staged, or with its image
//! * [`locked`] - who is waited for

pub mod locked;
mod node;
pub mod rank;
pub mod stager;

use std::sync::Arc;
use std::sync::mpsc;

use stillpoint_gpu_driver::storage::Storage;
use stillpoint_gpu_plan::{Copies, Source};
use stillpoint_gpu_staging::Staged;

use stager::Order;

/// How what is staged goes to images and back: slots of host memory for each rank.
const DRAIN: Copies = Copies {
    streams: 2,
    slot: 16 << 20,
};

/// What was staged together. It is given back when nobody holds it any more.
pub struct Group {
    staged: Option<Staged>,
    back: mpsc::Sender<Order>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take() {
            // Without the thread this process ends, and the driver takes all of it.
            let _ = self.back.send(Order::GiveBack(staged));
        }
    }
}

/// A rank's part of it.
pub struct Portion {
    pub group: Arc<Group>,
    pub rank: u32,
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
