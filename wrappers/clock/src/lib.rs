//! The collective clock and the job's safe-state logic: pure, no I/O, no unsafe.
//!
//! The algorithm is the one of "Collective Vector Clocks: Low-Overhead Transparent Checkpointing for
//! MPI" (Xu and Cooperman), section 4. Its pieces are here:
//!
//! | paper | here |
//! |---|---|
//! | ggid (4.1) | [`group::ggid`], [`group::communicator_ggid`], with collisions detected by [`group::Groups`] |
//! | SEQ, TARGET (4.1) | cells of the runtime ([`cells`] says which is whose, [`count`] what is counted), given to the functions below as plain numbers |
//! | COMMIT_BEGIN (Algorithm 2) | [`rank::commit_begin`] |
//! | COMMIT_FINISH (Algorithm 2) | [`rank::commit_finish`] |
//! | initiation of a nonblocking collective (4.3.1) | [`count::Count::initiate`]; it binds by [`rank::tell`] |
//! | WAIT_FOR_TARGET_UPDATES (Algorithm 3) | [`rank::may_park`] and the agent's [`rank::observe`] |
//! | exchange of SEQ, computing TARGET (4.2.1) | [`safe_state::SafeState`] |
//! | two-phase commit (2.2) | [`two_phase::step`] |
//! | sending a raised target to the other members (4.2.2) | [`safe_state::SafeState`] |
//! | all targets reached everywhere (4.2.4) | [`safe_state::Action::SafeStateFound`] |
//!
//! The differences from the paper, with their reasons:
//!
//! * Every communicator has a clock of its own, also where several have the same members (see [`group`]).
//! * Targets and raises travel from agent to agent through the coordinator instead of over MPI. So a
//!   rank that sits in a blocking call learns of them too, and no application thread polls.
//! * A rank parks wherever it stands once its targets are reached, not only at its next collective
//!   call. A rank that still has targets ahead may then wait for a message that a parked rank has yet
//!   to send. So when no rank runs and a rank waits, parked ranks may pass one more park point
//!   ([`safe_state::Action::Advance`]).
//! * Parked ranks' message counts end the drain ([`drain::Drain`]).
//!
//! The runtime drives this code; it drives nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod absent;
pub mod cells;
pub mod count;
pub mod drain;
pub mod group;
pub mod rank;
pub mod safe_state;
pub mod steps;
pub mod two_phase;
