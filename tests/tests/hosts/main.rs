//! Jobs over several hosts, which are network namespaces: hosts that are lost, slow hosts, and a checkpoint directory that answers late.
//!
//! * [`scene`] - what a seed decides of a loss
//! * [`loss`] - one loss, from the start of the job to the right end of its restart
//! * [`lost`] - losses by seed: `STILLPOINT_HOSTS_SEEDS=1..31` tries thirty, `STILLPOINT_HOSTS_TABLE=FILE` writes what became of them
//! * [`slow`] - hosts that are slow, or out of reach for a while
//! * [`late`] - a checkpoint directory that answers late
//! * [`user_space`] - one that is late in one operation after the other
//! * [`job`] - the job of all of them

mod job;
mod late;
mod loss;
mod lost;
mod scene;
mod slow;
mod user_space;
