//! A job of pretended ranks, agents and a coordinator around the real clock, one step at a time in any order.
//!
//! Everything that decides is `stillpoint_clock`'s, the very code that Stillpoint's stubs and coordinator run.
//! What is modelled here is what surrounds it:
//!
//! * memory that a rank and its agent share, sequentially consistent, as it is after the `membarrier`;
//! * channels between each agent and the coordinator, which keep their order (TCP) and are as slow as they like;
//! * messages on the wire, eager and synchronous;
//! * collective operations that are as synchronizing as MPI allows, or as little: a rooted one lets its root go
//!   at once, a neighbourhood one waits for neighbours only;
//! * the driver thread's way through a stub, at the grain at which the agent can see it.
//!
//! [`job`] is the job and what may happen next, [`rank`] the application's side with its [`clocks`], [`mod@step`] what its driver thread
//! does next, [`barrier`] its way through the barriers of two-phase commit, [`inside`] through operations that can be begun again, [`ahead`] through those that are carried out ahead of it, [`wire`] messages, [`agent`] its agent,
//! [`coordinator`] the job's side, [`asking`] what it asks and answers late members, [`ending`] how a checkpoint ends, [`promise`] what must hold. [`program`] says what ranks do, [`random`] makes
//! correct programs from a seed, [`mutant`] leaves essential steps out, [`reduction`]
//! says what a search may leave out. [`scale`] is another, coarser one for very
//! many ranks, with time.
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
