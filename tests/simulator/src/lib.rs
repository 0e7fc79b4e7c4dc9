//! A job of pretended ranks, agents and a coordinator around the real clock, one step at a time in any order.
//!
//! Every decision is `stillpoint_clock`'s, the very code that Stillpoint's stubs and coordinator run.
//! The simulator models its surroundings:
//!
//! * memory that a rank and its agent share, sequentially consistent, as it is after the `membarrier`;
//! * channels between each agent and the coordinator, which keep their order (TCP) and are as slow as they like;
//! * messages on the wire, eager and synchronous;
//! * collective operations that are as synchronizing as MPI allows, or as little: a rooted one lets its root go
//!   at once, a neighbourhood one waits for neighbours only;
//! * the driver thread's way through a stub, at the grain at which the agent can see it.
//!
//! [`job`] is the job and what may happen next, [`rank`] the application's side with its [`clocks`], and [`mod@step`] the next step of its driver thread.
//! [`barrier`] is the rank's way through the barriers of two-phase commit, [`inside`] its way through operations that can be begun again, and [`ahead`] its way
//! through those that are carried out ahead of it. [`wire`] holds messages, and [`agent`] is the rank's agent. [`coordinator`] is the job's side, [`asking`]
//! its questions and answers about late members, [`ending`] the end of a checkpoint, and [`promise`] what must hold. [`program`] describes the operations of
//! ranks, [`random`] makes correct programs from a seed, [`mutant`] leaves essential steps out, and [`reduction`] finds what a search may leave out. [`scale`]
//! is another, coarser simulator for very many ranks, with time.
#![forbid(unsafe_code)]

pub mod agent;
pub mod ahead;
pub mod asking;
pub mod barrier;
pub mod clocks;
pub mod coordinator;
pub mod ending;
pub mod inside;
pub mod job;
pub mod mutant;
pub mod program;
pub mod promise;
pub mod random;
pub mod random_run;
pub mod rank;
pub mod ranks;
pub mod reduction;
pub mod scale;
pub mod step;
pub mod wire;
