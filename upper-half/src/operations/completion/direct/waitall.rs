//! `MPI_Waitall` the short way.
//!
//! If the real MPI calls back ([`real_wait`]), all requests are waited for in one call of its own.
//!
//! Otherwise, each question about a single request costs the real MPI and us a call. So, unless there are only [`SO_FEW`], one request is waited for - the last
//! receive, which is mostly the last to be over - and then all others are asked for in one call. If that was not the last one, they are asked one by one.

use core::ffi::c_int;

use stillpoint_wrappers::gate::AGAIN;
use stillpoint_wrappers::neutral::Word;

use super::asked::{FEW, Looked, PolledRequests};
use super::several::Statuses;
use super::wait_for;
use crate::ground::abi::{self, Handle, PlaceOf, RequestHandle};
use crate::ground::arch;
use crate::objects::outcome::class;
use crate::operations::completion::{EMPTY, give_whole, real_wait};
use crate::operations::direct;
use crate::operations::request::{self, over};

/// `MPI_Waitall`, from the first request on. Returns how many of them it has completed without an error. The rest has to go the
/// long way.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn waitall(
    count: usize,
    handles: PlaceOf<RequestHandle>,
    statuses: *mut abi::Status,
) -> usize {
    // SAFETY: MPI demands `count` handles, and as many statuses unless they are ignored.
    let mut done = unsafe { sends_first(count, handles, statuses) };
    while done < count && direct::open() {
        let some = (count - done).min(FEW);
        // SAFETY: `done` is below `count`, so both pointers stay within the application's arrays.
        let over = unsafe {
            let statuses = if abi::is_ignored(statuses) {
                statuses
            } else {
                statuses.add(done)
            };
            if some <= SO_FEW {
                one_after_the_other(some, handles.add(done), statuses)
            } else {
                few(some, handles.add(done), statuses)
            }
        };
        done += over;
        if over < some {
            break;
        }
    }
    done
}

/// Tells of the sends at the call's beginning that were over at once, and returns how many these are. They need no stay. Four at a time, as there are mostly
/// many or none.
///
/// # Safety
/// As [`waitall`].
#[inline(always)]
unsafe fn sends_first(
    count: usize,
    handles: PlaceOf<RequestHandle>,
    statuses: *mut abi::Status,
) -> usize {
    let Some(sent) = over::own() else {
        return 0;
    };
    // SAFETY: every index is below `count`, which both arrays have (the statuses unless they are ignored).
    unsafe {
        let is = |index: usize| handles.add(index).holds(sent);
        if count == 0 || !is(0) {
            return 0;
        }
        let null = RequestHandle::of(request::null());
        let tell = |index: usize| handles.add(index).write(null);
        let mut done = 0;
        while done < count & !3 && is(done) && is(done + 1) && is(done + 2) && is(done + 3) {
            tell(done);
            tell(done + 1);
            tell(done + 2);
            tell(done + 3);
            done += 4;
        }
        while done < count && is(done) {
            tell(done);
            done += 1;
        }
        if !abi::is_ignored(statuses) {
            (0..done).for_each(|index| give_whole(statuses, index, &EMPTY));
        }
        done
    }
}

/// Whether a library's `MPI_Testall` may end a persistent request that has failed and return no error. Open MPI's does, and tells of the error in the status.
const UNTOLD: bool = cfg!(application = "openmpi");

/// The number of requests for which single calls cost less than one question about all.
const SO_FEW: usize = 4;

/// [`waitall`] of at most [`SO_FEW`].
///
/// # Safety
/// As [`waitall`]; the way must be open.
#[inline(always)]
unsafe fn one_after_the_other(
    count: usize,
    handles: PlaceOf<RequestHandle>,
    statuses: *mut abi::Status,
) -> usize {
    let null = request::null();
    // SAFETY: every index is below `count`, which both arrays have; each request is looked at within the stay, so no checkpoint changes its form.
    unsafe {
        let stay = direct::enter();
        for index in 0..count {
            let handle = handles.add(index);
            let status = if abi::is_ignored(statuses) {
                statuses
            } else {
                statuses.add(index)
            };
            if let Some(request) = request::plain(handle.get()) {
                if !wait_for(request, status) {
                    stay.go_back();
                    return index;
                }
                handle.set(null);
                if !abi::is_ignored(status) {
                    (*status).error = 0;
                }
            } else if over::is(handle.get()) || handle.get() == null {
                handle.set(null);
                give_whole(status, 0, &EMPTY);
            } else {
                stay.go_back();
                return index;
            }
        }
        real_wait::leave(stay);
    }
    count
}

/// [`waitall`] of at most [`FEW`].
///
/// # Safety
/// As [`waitall`]; `count` is at most [`FEW`].
#[inline(never)]
unsafe fn few(count: usize, handles: PlaceOf<RequestHandle>, statuses: *mut abi::Status) -> usize {
    let mut asked = PolledRequests::new(handles);
    let mut room = Statuses::new();
    let all = Waited {
        statuses: room.unless(statuses),
        given: !abi::is_ignored(statuses),
        chosen: 0,
        found: abi::Status::from_neutral(&EMPTY),
    };
    // SAFETY: `begin` has looked at all `count` handles within the stay; `statuses` has a place for each, or is ignored and replaced by `all`'s own.
    unsafe {
        let Some((stay, looked)) = asked.begin(count as c_int) else {
            return 0;
        };
        let over = match real_wait::possible() {
            // The words tell which request has failed only if all are plain.
            true if looked.are_plain() => wait(&mut asked, &looked, count, statuses),
            true => wait(&mut asked, &looked, count, all.statuses),
            false => all.complete(&mut asked, &looked, count),
        };
        if over < count {
            stay.go_back();
        } else {
            real_wait::leave(stay);
        }
        over
    }
}

/// Requests that are waited for.
struct Waited {
    /// Places for their statuses, and whether they are the application's.
    statuses: *mut abi::Status,
    given: bool,
    /// The one that is waited for first, and its status: the real MPI would overwrite it in its place.
    chosen: usize,
    found: abi::Status,
}

impl Waited {
    /// Completes requests from the first on, and returns how many are over.
    ///
    /// # Safety
    /// In the stay in which `asked` has begun, with `count` requests.
    #[inline(always)]
    unsafe fn complete(
        mut self,
        asked: &mut PolledRequests,
        looked: &Looked,
        count: usize,
    ) -> usize {
        let table = direct::table();
        self.chosen = looked.last_receive(count);
        // SAFETY: `asked` has begun with `count` requests, whose words it holds; `statuses` has a place for each, and no other thread asks for them meanwhile.
        unsafe {
            match until_over(asked.word(self.chosen), &mut self.found) {
                Answer::Over => {}
                Answer::NotYet => return 0,
                Answer::Failed(code) => {
                    asked.keep(self.chosen, code, &self.found);
                    return 0;
                }
            }
            self.found.error = 0;
            // The chosen request is null now, or inactive.
            let others = if self.chosen == count - 1 {
                count - 1
            } else {
                count
            };
            let (mut over, mut code) = (1, 0);
            if others > 0 {
                self.prepare(looked, others);
                let (number, words) = (others as c_int, asked.words());
                code = (table.testall)(number, words, &mut over, self.statuses.cast());
            }
            if code != 0 {
                return self.failed(asked, count, direct::error(code) == class::IN_STATUS);
            }
            if over != 0 && self.have_failed(looked, others) {
                return self.failed(asked, count, true);
            }
            if over == 0 {
                return self.one_by_one(asked, looked, count);
            }
            if self.given {
                *self.statuses.add(self.chosen) = self.found;
            }
            asked.tell_all(count, looked);
        }
        count
    }

    /// Clears the statuses of all but the chosen one before they are asked for, so that no status shows an error that was not told.
    ///
    /// # Safety
    /// As [`Waited::complete`], for `others` of the requests.
    #[inline(always)]
    unsafe fn prepare(&self, looked: &Looked, others: usize) {
        if UNTOLD && !looked.are_plain() {
            // SAFETY: `statuses` has a place for each of the requests, of which there are at least `others`.
            (0..others).for_each(|index| unsafe { (*self.statuses.add(index)).error = 0 });
        }
    }

    /// Whether a request that is over has failed although the call has not.
    ///
    /// # Safety
    /// As [`Waited::complete`], for `others` of the requests.
    #[inline(always)]
    unsafe fn have_failed(&self, looked: &Looked, others: usize) -> bool {
        UNTOLD
            && !looked.are_plain()
            // SAFETY: `statuses` has a place for each of the requests; `prepare` has cleared the error before the real MPI filled it.
            && (0..others).any(|index| unsafe { (*self.statuses.add(index)).error != 0 })
    }

    /// The chosen one is over, the others are not.
    ///
    /// # Safety
    /// As [`Waited::complete`].
    #[cold]
    #[inline(never)]
    unsafe fn one_by_one(
        &self,
        asked: &mut PolledRequests,
        looked: &Looked,
        count: usize,
    ) -> usize {
        for index in 0..count {
            // SAFETY: the index is below `count`, so there is a request and a place for its status.
            unsafe {
                let status = self.statuses.add(index);
                if index == self.chosen {
                    *status = self.found;
                    asked.tell(index, looked);
                    continue;
                }
                let answer = until_over(asked.word(index), status);
                if answer == Answer::Over {
                    (*status).error = 0;
                    asked.tell(index, looked);
                    continue;
                }
                if let Answer::Failed(code) = answer {
                    asked.keep(index, code, status);
                }
                if index < self.chosen {
                    asked.keep(self.chosen, 0, &self.found);
                }
                return index;
            }
        }
        count
    }

    /// All are over, some with an error.
    ///
    /// # Safety
    /// As [`Waited::complete`].
    #[cold]
    #[inline(never)]
    unsafe fn failed(&self, asked: &PolledRequests, count: usize, are_told: bool) -> usize {
        // SAFETY: there is a status for each of the `count` requests; the real MPI has told each that is read here.
        unsafe {
            asked.keep(self.chosen, 0, &self.found);
            if are_told {
                for index in (0..count).filter(|index| *index != self.chosen) {
                    let status = self.statuses.add(index);
                    asked.keep(index, (*status).error, status);
                }
            }
        }
        0
    }
}

/// [`few`] by the real MPI's own `MPI_Waitall`.
///
/// # Safety
/// In the stay in which `asked` has begun, with `count` requests; `statuses` must be ignored or have as many places.
#[inline(always)]
unsafe fn wait(
    asked: &mut PolledRequests,
    looked: &Looked,
    count: usize,
    statuses: *mut abi::Status,
) -> usize {
    let words = asked.words();
    // SAFETY: `words` are those of the `count` requests, written down within this stay; the real MPI writes to `count` statuses unless they are ignored.
    unsafe {
        let code = real_wait::call(|table| {
            real_wait::there(table.waitall)(count as c_int, words, statuses.cast())
        });
        if !arch::is_success(code) {
            not_all(asked, count, statuses, code);
            return 0;
        }
        asked.tell_all(count, looked);
    }
    count
}

/// The real MPI's own wait has returned that code: some requests are over, one of them with an error. The wait goes from the first to the last and ends with
/// the one that has failed. If the application ignores the statuses, and all are plain, that is the last one that the real MPI has given up.
///
/// # Safety
/// As [`wait`], which has got that code.
#[cold]
#[inline(never)]
unsafe fn not_all(asked: &PolledRequests, count: usize, statuses: *const abi::Status, code: c_int) {
    if code == AGAIN || direct::error(code) != class::IN_STATUS {
        return;
    }
    // SAFETY: statuses that are not ignored number `count`, and the real MPI has filled them when it returns `IN_STATUS`; `keep` gets indices below `count`
    // only.
    unsafe {
        if !abi::is_ignored(statuses) {
            for index in 0..count {
                let status = statuses.add(index);
                asked.keep(index, (*status).error, status);
            }
            return;
        }
        let mut code = code;
        for index in (0..count).rev().filter(|index| asked.is_given_up(*index)) {
            asked.keep(index, code, statuses);
            code = 0;
        }
    }
}

/// The answer of a request that was asked until it was over or a checkpoint was pending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Over,
    NotYet,
    Failed(c_int),
}

/// # Safety
/// In a stay; `word` must be a request's, `status` writable.
#[inline(always)]
unsafe fn until_over(word: *mut Word, status: *mut abi::Status) -> Answer {
    loop {
        let mut over = 0;
        // SAFETY: `word` is a request's as the real MPI gave it, and `status` is writable, by the caller's promise.
        let code = unsafe { (direct::table().test)(word, &mut over, status.cast()) };
        if code != 0 {
            return Answer::Failed(code);
        }
        if over != 0 {
            return Answer::Over;
        }
        if arch::gate_pending() {
            return Answer::NotYet;
        }
    }
}
