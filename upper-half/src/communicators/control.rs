//! A communicator of all ranks, beside `MPI_COMM_WORLD`, that only this library knows.
//!
//! Some real MPIs make a group's communicator, or an intercommunicator, by ordinary messages with the
//! application's tag. On a communicator of the application's, a rank that pulls in everything because a
//! checkpoint is pending would take such a message for the application's. On this one, no rank pulls. Words about drained messages go here too, with a tag of
//! their own (`operations::messages::taken`).

use stillpoint_wrappers::neutral::Word;

use crate::ground::crossing;
use crate::objects::communicator::set_control;
use crate::objects::outcome::{MpiResult, check};
use crate::operations::messages::taken;

/// The tag of the messages that make it.
const TAG: i32 = 0;

/// Makes it: collective over all ranks, when MPI has started and at every restart.
///
/// The call is `MPI_Comm_create_group`, because `MPI_Comm_dup` of Open MPI 4.1 agrees on a context number by a nonblocking reduction, whose
/// library registers itself with `opal_progress` and stays there. From then on `MPI_Iprobe` takes 6 % longer, natively too, and a
/// program that makes no communicators must not pay for ours. No rank pulls messages in yet, and each message that this call sends is
/// awaited in the call itself.
///
/// The first context number stays free for the application's first communicator, as it would be without us:
/// Open MPI 4.1's `treematch` module for reordered distributed graphs hangs now and then if that
/// number is taken.
///
/// # Safety
/// Inside MPI, on the one thread that is.
pub unsafe fn make() -> MpiResult {
    let (mut everybody, mut first, mut word): (Word, Word, Word) = (0, 0, 0);
    // SAFETY: inside; the world's word is in place.
    unsafe {
        let world = (*super::world()).lower;
        check(crossing::cross(|d| {
            (d.comm_group)(world, &raw mut everybody)
        }))?;
        for made in [&raw mut first, &raw mut word] {
            check(crossing::cross(|d| {
                (d.comm_create_group)(world, everybody, TAG, made)
            }))?;
        }
        check(crossing::cross(|d| (d.comm_free)(&raw mut first)))?;
        check(crossing::cross(|d| (d.group_free)(&raw mut everybody)))?;
    }
    set_control(word);
    Ok(())
}

/// Frees it, before MPI ends.
///
/// # Safety
/// Inside MPI.
pub unsafe fn end() {
    // SAFETY: the caller is inside; the control communicator is this library's, and is forgotten before it is freed.
    unsafe {
        taken::finish();
        let mut word = set_control(0);
        if word != 0 {
            crossing::cross(|d| (d.comm_free)(&raw mut word));
        }
    }
}
