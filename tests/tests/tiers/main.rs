//! Images staged on fast tiers, peers and the slow tier, under real jobs. Each rank is a node: it has a fast tier in a
//! directory of its own. With any loss on the way, a restart is right, or is refused with a reason.
//!
//! * [`nodes`] - the job that all of them start
//! * [`staged`] - the places of blocks, and how they become durable
//! * [`lost`] - losses before an epoch is durable
//! * [`network`] - nodes in network namespaces: blocks come over the network or not at all
//! * [`leftovers`] - leftovers of killed jobs on fast tiers
//! * [`interrupted`] - signals to waiting commands
//! * [`refused`] - messages about impossible requests

mod increments;
mod interrupted;
mod leftovers;
mod lost;
mod network;
mod nodes;
mod refused;
mod staged;
