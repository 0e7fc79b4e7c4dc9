//! Requests in a restart: pending ones are begun again.

use stillpoint_wrappers::gate::HandleKind;

use super::{begin, make, start_below};
use crate::ground::abi;
use crate::ground::crossing::cross;
use crate::objects::outcome::class;
use crate::operations::request::{self, Arguments, GONE, Kind, PERSISTENT, Request, State};
use crate::operations::synchronous;

/// Makes every request anew in the lower half of a restart. First come those with a recipe, in the order in
/// which they were made (which all members of a persistent collective share), then the others in the order in
/// which they were begun, so that receives match as before. Objects, whose words the requests
/// need, exist already. Returns the first error.
///
/// # Safety
/// On the main thread of a restart.
pub unsafe fn rebuild() -> i32 {
    let all = request::live();
    // SAFETY: live requests; no other thread exists.
    unsafe {
        let (mut made, begun): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|request| (**request).recipe.is_some());
        made.sort_by_key(|request| (**request).made);
        for request in made.into_iter().chain(begun) {
            let code = rebuild_one(request);
            if code != 0 {
                return code;
            }
        }
    }
    0
}

/// # Safety
/// In a restart, on its main thread; `request` must be a live request whose objects have their words.
unsafe fn rebuild_one(request: *mut Request) -> i32 {
    // SAFETY: the request is alive, by the caller's promise, and holds its objects; no other thread runs.
    unsafe {
        let it = &mut *request;
        let arguments = Arguments {
            kind: it.kind,
            buffer: it.buffer,
            count: it.count,
            datatype: it.datatype,
            peer: it.peer,
            tag: it.tag,
            communicator: it.communicator,
        };
        if it.recipe.is_some() {
            return rebuild_by_recipe(it);
        }
        if it.flags & PERSISTENT != 0 {
            let mut word = 0;
            let code = make(it.kind, &arguments, &mut word);
            it.head.lower = word;
            if code == 0 && it.state == State::Active && !synchronous::is(it) {
                it.state = State::Inactive;
                // It keeps its place among the others, also in the restart after this one.
                let begun = it.begun;
                let code = begin(request);
                (*request).begun = begun;
                return code;
            }
            return code;
        }
        // At the still point a synchronous send was over below: it waits for its receiver's word.
        if it.state != State::Active || synchronous::is(it) {
            it.head.lower = request::null_word();
            return 0;
        }
        let mut word = 0;
        let datatype = abi::word(HandleKind::Datatype, it.datatype);
        let comm = abi::word(HandleKind::Communicator, it.communicator);
        let code = cross(|dispatch| {
            let a = &arguments;
            (dispatch.irecv)(a.buffer, a.count, datatype, a.peer, a.tag, comm, &mut word)
        });
        it.head.lower = word;
        code
    }
}

/// Makes a request with a recipe anew. If no member knows of the end of a nonblocking collective operation, all that had begun it
/// begin it again, even if it was over below. The others are over.
unsafe fn rebuild_by_recipe(it: &mut Request) -> i32 {
    let Some(recipe) = &it.recipe else { return 0 };
    if it.flags & GONE != 0 {
        it.head.lower = request::null_word();
        return 0;
    }
    let persistent = it.flags & PERSISTENT != 0;
    let told = if persistent {
        it.told
    } else {
        // SAFETY: a live request holds its communicator.
        unsafe { (*it.communicator).told }
    };
    let repeats = it.kind == Kind::Collective
        && it.state != State::Inactive
        && it.number != 0
        && it.number > told;
    if it.kind == Kind::Collective && it.state == State::Active && !repeats {
        return class::INTERN;
    }
    if it.state == State::Done && !persistent && !repeats {
        it.head.lower = request::null_word();
        return 0;
    }
    let mut word = 0;
    // SAFETY: the main thread of a restart; what the recipe refers to is held.
    unsafe {
        let code = cross(|dispatch| recipe.run(dispatch, &mut word));
        it.head.lower = word;
        if code != 0 || !repeats {
            return code;
        }
        it.state = State::Active;
        if persistent { start_below(it) } else { 0 }
    }
}
