//! The messages by which post, start, complete and wait find each other.
//!
//! They are empty, and on a communicator of the window's own. A thread that waits takes them in and counts them in the window's notes, and so does a parked
//! rank: at the still point none is under way. They count as messages like any other, so that the drain knows when that is reached.

use std::ffi::c_void;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::constants::{ANY_SOURCE, ANY_TAG};
use stillpoint_wrappers::neutral::{Status, Word};

use super::body::{Body, Notes, RMA_SYNC, open};
use crate::ground::object::Group;
use crate::ground::{abi, arch, crossing, handle};
use crate::objects::group;
use crate::objects::outcome::{MpiResult, check, class, live};
use crate::operations::messages::points;

/// The tags of both.
pub const POST: i32 = 1;
pub const COMPLETE: i32 = 2;

/// The number of looks without a message after which the processor is given away.
const LOOKS: u32 = 200;

/// The word of a group for the lower half.
///
/// # Safety
/// Inside a stub; `it` must be null or a handle.
pub unsafe fn word(it: Group) -> MpiResult<Word> {
    // SAFETY: `it` is null or a handle, by the caller's promise; its word is asked for only if it is alive.
    unsafe {
        if !handle::valid(it, HandleKind::Group) {
            return Err(class::GROUP);
        }
        group::word(it)
    }
}

/// The window's ranks of the members of a group.
///
/// # Safety
/// As [`word`].
pub unsafe fn ranks(body: &Body, it: Group) -> MpiResult<Vec<i32>> {
    // SAFETY: `it` is null or a handle, by the caller's promise, and `live` looks at it.
    let members = unsafe { group::members(live(it, HandleKind::Group)?) };
    let members = members.ok_or(class::GROUP)?;
    let rank_of = |world: &i32| {
        let place = body.members.iter().position(|member| member == world);
        place.map(|place| place as i32).ok_or(class::RANK)
    };
    members.iter().map(rank_of).collect()
}

/// `MPI_INT`; a message has no elements of it.
fn int() -> Word {
    // SAFETY: `MPI_INT` is a predefined object, which always exists.
    unsafe { (*abi::predefined(HandleKind::Datatype, 521)).lower }
}

/// Sends those ranks a message.
///
/// # Safety
/// Inside a stub.
pub unsafe fn tell(body: &Body, ranks: &[i32], tag: i32) -> MpiResult {
    let (on, int) = (body.communicator(), int());
    for rank in ranks {
        let nothing: *const c_void = std::ptr::null();
        // SAFETY: inside; the thread has a record.
        unsafe {
            arch::count_sent();
            let sent = crossing::cross(|d| (d.send)(nothing, 0, int, *rank, tag, on));
            if sent != 0 {
                arch::uncount_sent();
            }
            check(sent)?;
        }
    }
    Ok(())
}

/// Takes in the messages that have arrived. Returns whether there were any.
///
/// # Safety
/// Inside a stub, or parked.
pub unsafe fn take_in(body: &Body) -> MpiResult<bool> {
    let (on, int) = (body.communicator(), int());
    let mut notes = body.notes.lock();
    let mut any = false;
    loop {
        let (mut there, mut status) = (0, Status::default());
        let nothing: *mut c_void = std::ptr::null_mut();
        // SAFETY: inside; only the holder of the notes receives.
        unsafe {
            check(crossing::cross(|d| {
                (d.iprobe)(ANY_SOURCE, ANY_TAG, on, &raw mut there, &raw mut status)
            }))?;
            if there == 0 {
                return Ok(any);
            }
            let (source, tag) = (status.source, status.tag);
            let none = std::ptr::null_mut();
            check(crossing::cross(|d| {
                (d.recv)(nothing, 0, int, source, tag, on, none)
            }))?;
            arch::count_received();
            let Notes {
                posts, completes, ..
            } = &mut *notes;
            let counts = if tag == POST { posts } else { completes };
            if let Some(count) = counts.get_mut(source as usize) {
                *count += 1;
            }
            any = true;
        }
    }
}

/// Waits until the condition is true, which messages bring about.
///
/// # Safety
/// Inside a stub, nothing locked.
pub unsafe fn until(body: &Body, there: impl Fn() -> MpiResult<bool>) -> MpiResult {
    let (mut looks, mut interrupted) = (0, false);
    // SAFETY: the caller is inside a stub with nothing locked, so the thread may stand still at `blocked`.
    unsafe {
        let outcome = loop {
            match there() {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
            match take_in(body) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => break Err(error),
            }
            if crossing::pending() {
                interrupted = true;
                points::blocked();
            } else {
                looks += 1;
                if looks % LOOKS == 0 {
                    arch::yield_processor();
                }
            }
        };
        if interrupted {
            points::unblocked();
        }
        outcome
    }
}

/// Takes one message of each of these ranks, if all have sent one.
fn take(counts: &mut [u32], ranks: &[i32]) -> bool {
    let of = |rank: &i32| *rank as usize;
    let there = ranks
        .iter()
        .all(|rank| counts.get(of(rank)).is_some_and(|count| *count > 0));
    if there {
        for rank in ranks {
            if let Some(count) = counts.get_mut(of(rank)) {
                *count -= 1;
            }
        }
    }
    there
}

/// Whether all ranks that were posted to have completed: then the epoch is over.
pub fn completed(body: &Body) -> MpiResult<bool> {
    let mut notes = body.notes.lock();
    let Notes {
        posted, completes, ..
    } = &mut *notes;
    let done = take(completes, posted.as_deref().ok_or(RMA_SYNC)?);
    if done {
        *posted = None;
    }
    Ok(done)
}

/// Waits until all ranks that were started have posted.
///
/// # Safety
/// As [`until`].
#[cold]
pub unsafe fn await_posts(body: &Body) -> MpiResult {
    // SAFETY: the caller is inside a stub with nothing locked; the notes' lock is released each time before the thread waits.
    unsafe {
        until(body, || {
            let mut notes = body.notes.lock();
            if !body.is_open(open::AWAITS) {
                return Ok(true);
            }
            let Notes { started, posts, .. } = &mut *notes;
            let there = take(posts, started.as_deref().unwrap_or(&[]));
            if there {
                body.end(open::AWAITS);
            }
            Ok(there)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn messages_are_taken_from_all_or_from_none() {
        let mut counts = [1, 0, 2];
        assert!(!take(&mut counts, &[0, 1]));
        assert_eq!(counts, [1, 0, 2]);
        assert!(take(&mut counts, &[2, 0]));
        assert_eq!(counts, [0, 0, 1]);
        assert!(take(&mut counts, &[]));
        assert!(!take(&mut counts, &[7]));
    }
}
