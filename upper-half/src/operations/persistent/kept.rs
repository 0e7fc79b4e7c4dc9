//! Persistent collective operations in a restart. Those that all members of a communicator still have are made again, in one order.
//! No rank can start the others any more, which some members have freed: they are gone below, and wait to be freed.
//!
//! An operation has the same number on all members (see [`operations::clock::persistent`]). The members compare theirs one by one. The largest is the earliest
//! that all members can have next: a member with smaller ones has these alone. For operations that all have, they also learn the newest start whose end any
//! member has been told of.

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::abi;
use crate::ground::crossing::cross;
use crate::ground::object::Object;
use crate::objects::outcome::{MpiResult, check, class};
use crate::operations::clock::persistent as clocks;
use crate::operations::clock::persistent::MAX;
use crate::operations::request::{self, GONE, Kind, PERSISTENT, Request, State};
use stillpoint_wrappers::standard;

/// A number that no operation has: it stands for the end of the list.
const NOTHING: i64 = i64::MAX;

/// A communicator's words in the new lower half.
pub struct Members {
    /// Of this rank's group.
    pub local: Word,
    /// Of both groups, if it is an intercommunicator.
    pub inter: Option<Word>,
}

impl Members {
    /// The smallest and the largest of the members' numbers, and the largest of the starts whose end they were told of.
    ///
    /// # Safety
    /// In a restart; all members call it.
    unsafe fn extremes(&self, number: i64, told: i64) -> MpiResult<(i64, i64, i64)> {
        // SAFETY: all members of these communicators call this in the same order, by the caller's promise; both words are the lower half's.
        unsafe {
            let mut largest = maximum([number, -number, told], self.local)?;
            if let Some(inter) = self.inter {
                // It gives the values of the other group's members.
                let theirs = maximum(largest, inter)?;
                for (own, theirs) in largest.iter_mut().zip(theirs) {
                    *own = (*own).max(theirs);
                }
            }
            Ok((-largest[1], largest[0], largest[2]))
        }
    }
}

/// # Safety
/// In a restart; `word` must be a communicator of the lower half's, all of whose members call it.
unsafe fn maximum(own: [i64; 3], word: Word) -> MpiResult<[i64; 3]> {
    let mut all = [0; 3];
    let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
    // SAFETY: `word` is a communicator of the lower half's, by the caller's promise; predefined handles have their words. Three numbers go out, three come
    // back.
    unsafe {
        let int = (*abi::predefined(HandleKind::Datatype, standard::INT64_T)).lower;
        let max = (*abi::predefined(HandleKind::Operator, MAX)).lower;
        check(cross(|d| (d.allreduce)(from, to, 3, int, max, word)))?;
    }
    Ok(all)
}

/// Finds out which persistent collectives of a communicator all members still have. A rank that has forgotten the communicator (a null
/// object) has none.
///
/// # Safety
/// On the main thread of a restart; all members call it.
pub unsafe fn agree(members: &Members, communicator: *mut Object) -> MpiResult {
    // SAFETY: live requests; no other thread exists.
    unsafe {
        if !communicator.is_null() {
            clocks::at_still_point(communicator);
        }
        let mut own: Vec<*mut Request> = request::live()
            .into_iter()
            .filter(|it| is_on(&**it, communicator))
            .collect();
        own.sort_by_key(|it| (**it).initialised);
        let mut own = own.into_iter().peekable();
        loop {
            let next = own.peek().map_or(NOTHING, |it| (**it).initialised as i64);
            let told = own.peek().map_or(0, |it| i64::from((**it).told));
            let (smallest, largest, told) = members.extremes(next, told)?;
            if smallest == largest {
                if largest == NOTHING {
                    return Ok(());
                }
                if let Some(it) = own.next() {
                    (*it).told = told as u32;
                }
                continue;
            }
            while let Some(it) = own.next_if(|it| ((**it).initialised as i64) < largest) {
                if (*it).state == State::Active {
                    return Err(class::INTERN);
                }
                (*it).flags |= GONE;
            }
        }
    }
}

fn is_on(it: &Request, communicator: *mut Object) -> bool {
    it.kind == Kind::Collective
        && it.flags & (PERSISTENT | GONE) == PERSISTENT
        && it.communicator == communicator
}
