//! Images staged on fast tiers, peers and the slow tier, under real jobs. Each rank is a node: it has a fast tier in a
//! directory of its own. Whatever is lost on the way, a restart is right, or is refused with a reason.
//!
//! * [`nodes`] - the job that all of them start
//! * [`staged`] - what goes where, and becomes durable
//! * [`lost`] - what is lost before it is durable
//! * [`network`] - nodes in network namespaces: blocks come over the network or not at all
//! * [`leftovers`] - what killed jobs leave on fast tiers
//! * [`interrupted`] - signals to whoever waits
//! * [`refused`] - what cannot be done is said in words

mod increments;
mod interrupted;
mod leftovers;
mod lost;
mod network;
mod nodes;
mod refused;
mod staged;
