//! Groups of the lower half: made when one is asked for, read when one comes up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;
use stillpoint_wrappers::neutral::constants::UNDEFINED;

use super::{create, create_foreign, empty};
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{abi, crossing, handle};
use crate::objects::outcome::{MpiResult, check};
use crate::objects::rehearsal_outcome::{Tried, differs, failed};

/// The lower half's group of `MPI_COMM_WORLD`, once it was asked for.
static WORLD: SpinLock<Word> = SpinLock::new(0);

/// # Safety
/// Inside a stub.
unsafe fn world() -> MpiResult<Word> {
    let mut known = WORLD.lock();
    if *known == 0 {
        let mut word = 0;
        // SAFETY: inside; the word of `MPI_COMM_WORLD` is valid while MPI is.
        unsafe {
            let comm = (*abi::predefined(HandleKind::Communicator, 257)).lower;
            check(crossing::cross(|d| (d.comm_group)(comm, &raw mut word)))?;
        }
        *known = word;
    }
    Ok(*known)
}

/// The word under which the lower half knows a group; the group is made there if need be. If two threads make it at once, the second one's is freed.
///
/// # Safety
/// `object` must be a live group; inside a stub.
pub unsafe fn word(object: *mut Object) -> MpiResult<Word> {
    // SAFETY: `object` is a live group, by the caller's promise; the word that is made for it stays until the group ends. No other code knows the one that is
    // freed here.
    unsafe {
        let place = Object::word(object);
        let known = place.load(Ordering::Acquire);
        if known != 0 {
            return Ok(known);
        }
        let Some(members) = super::members(object) else {
            return Ok(known);
        };
        let mut made = make(&members)?;
        match place.compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(made),
            Err(other) => {
                crossing::cross(|d| (d.group_free)(&raw mut made));
                Ok(other)
            }
        }
    }
}

/// Makes the lower half's group of these world ranks.
///
/// # Safety
/// Inside a stub.
unsafe fn make(members: &[i32]) -> MpiResult<Word> {
    // SAFETY: inside; the ranks are those of a group.
    unsafe {
        let (world, mut word) = (world()?, 0);
        let (count, ranks) = (members.len() as i32, members.as_ptr());
        check(crossing::cross(|d| {
            (d.group_incl)(world, count, ranks, &raw mut word)
        }))?;
        Ok(word)
    }
}

/// The world ranks of a group of the lower half, or `None` if there are processes of other worlds.
///
/// # Safety
/// Inside a stub; `word` must be a group of the lower half's.
pub unsafe fn members_of(word: Word) -> MpiResult<Option<Arc<[i32]>>> {
    let mut size = 0;
    // SAFETY: inside; the arrays have as many elements as the group.
    unsafe {
        check(crossing::cross(|d| (d.group_size)(word, &raw mut size)))?;
        let ranks: Vec<i32> = (0..size).collect();
        let mut members = vec![0; ranks.len()];
        let world = world()?;
        let (from, to) = (ranks.as_ptr(), members.as_mut_ptr());
        check(crossing::cross(|d| {
            (d.group_translate_ranks)(word, size, from, world, to)
        }))?;
        if members.contains(&UNDEFINED) {
            return Ok(None);
        }
        Ok(Some(members.into()))
    }
}

/// Makes an object of a group that came up from the lower half; the group is ours from then on.
///
/// # Safety
/// As [`members_of`]; the group must be ours.
pub unsafe fn adopt(word: Word) -> MpiResult<*mut Object> {
    // SAFETY: `word` is a group of the lower half's, and ours, by the caller's promise; the numbers go into local variables.
    unsafe {
        if word == (*empty()).lower {
            return Ok(empty());
        }
        if let Some(members) = members_of(word)? {
            let object = create(members);
            if !(*object).predefined() {
                (*object).lower = word;
            }
            return Ok(object);
        }
        let (mut rank, mut size) = (0, 0);
        check(crossing::cross(|d| (d.group_rank)(word, &raw mut rank)))?;
        check(crossing::cross(|d| (d.group_size)(word, &raw mut size)))?;
        Ok(create_foreign(word, rank, size))
    }
}

/// Frees the lower half's counterpart of a group.
///
/// # Safety
/// `object` must be a live group of the slab; inside a stub.
pub unsafe fn free(object: *mut Object) {
    // SAFETY: the word was made for this group, and nothing else frees it, since the group has just lost it.
    unsafe {
        let mut word = std::mem::take(&mut (*object).lower);
        if word != 0 {
            crossing::cross(|d| (d.group_free)(&raw mut word));
        }
    }
}

/// Makes again, in a fresh lower half, the groups that the old one had: a stub may be on its way there with
/// one of them.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rebuild() -> MpiResult {
    *WORLD.lock() = 0;
    for object in handle::live(HandleKind::Group) {
        // SAFETY: a live group; foreign ones are never in an image.
        unsafe {
            if std::mem::take(&mut (*object).lower) != 0 {
                self::word(object)?;
            }
        }
    }
    Ok(())
}

/// The world ranks of a group of the lower half that is ours, and is freed.
///
/// # Safety
/// As [`members_of`]; the group must be ours, and used no more.
pub unsafe fn read_and_free(mut word: Word) -> MpiResult<Option<Arc<[i32]>>> {
    // SAFETY: `word` is a group of the lower half's, and ours, by the caller's promise; it is freed once.
    unsafe {
        let members = members_of(word);
        crossing::cross(|d| (d.group_free)(&raw mut word));
        members
    }
}

/// Makes each group that [`rebuild`] would make, and frees it again.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rehearse() -> Tried {
    for object in handle::live(HandleKind::Group) {
        // SAFETY: `live` gives live groups, and no other thread runs that could end one.
        unsafe {
            let Some(members) = super::members(object).filter(|_| (*object).lower != 0) else {
                continue;
            };
            let what = format!("group {}", (*object).id);
            let made = make(&members).and_then(|word| read_and_free(word));
            if made.map_err(|error| failed(&what, error))?.as_deref() != Some(&members[..]) {
                return Err(differs(&what));
            }
        }
    }
    Ok(())
}
