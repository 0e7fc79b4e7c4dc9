//! Jobs over several hosts, which are network namespaces: lost hosts, slow hosts, and a slow checkpoint directory.
//!
//! * [`scene`] - a loss by seed
//! * [`loss`] - one loss, from the start of the job to the right end of its restart
//! * [`lost`] - losses by seed: `STILLPOINT_HOSTS_SEEDS=1..31` tries thirty, `STILLPOINT_HOSTS_TABLE=FILE` writes their outcomes
//! * [`slow`] - hosts that are slow, or out of reach for a while
//! * [`late`] - a slow checkpoint directory
//! * [`user_space`] - a checkpoint directory that delays one operation after the other
//! * [`job`] - the job of all of them

mod job;
mod late;
mod loss;
mod lost;
mod scene;
mod slow;
mod user_space;
