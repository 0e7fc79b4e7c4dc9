//! The parts that generated stubs share: places for results, handles of new objects of the lower half, the clock.
//!
//! Runs in the application's threads, inside stubs; panics nowhere, allocates for arrays of handles only.

use core::ffi::{CStr, c_void};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{AGAIN, HandleKind};
use stillpoint_wrappers::neutral::{self, Word};

use crate::communicators;
use crate::ground::abi::{self, CommHandle, Handle, PlaceOf, RequestHandle, Status, Takes};
use crate::ground::crossing::cross_near;
use crate::ground::handle;
use crate::ground::hooks::note_call;
use crate::ground::object::{Comm, File, Group, Info, Object};
use crate::objects::outcome::MpiResult;
use crate::objects::{datatype, group, info};
use crate::operations::clock::kept::Input;
use crate::operations::clock::log::Note;
use crate::operations::clock::{collective, persistent as clocks, two_phase};
use crate::operations::request::{self, Arguments, Kind, Recipe};

mod handle_arrays;
mod neighbours;

pub use handle_arrays::Words;
pub use neighbours::{destinations, is_member, is_root, members, own, peers, significant, sources};

/// The lower half's place for a result: `inner`, unless the application gave no place.
#[inline(always)]
pub fn place<A, T>(outer: impl Takes<A>, inner: &mut T) -> *mut T {
    if outer.is_nowhere() {
        core::ptr::null_mut()
    } else {
        inner
    }
}

/// The lower half's input: `inner`, unless the application gave nothing.
#[inline(always)]
pub fn given<A, T>(outer: *const A, inner: *const T) -> *const T {
    if outer.is_null() {
        core::ptr::null()
    } else {
        inner
    }
}

/// Gives a result to the application, if it has a place for it.
///
/// # Safety
/// `place` must be null or writable.
#[inline(always)]
pub unsafe fn give<T>(place: impl Takes<T>, value: T) {
    if !place.is_nowhere() {
        // SAFETY: the place is not nowhere, so it is writable by the caller's promise.
        unsafe { place.put(value) };
    }
}

/// The neutral form of a status, or an empty one if the status is ignored. The status that is written back has fields
/// that MPI leaves alone, so they are read first.
///
/// # Safety
/// `status` must be null or readable.
#[inline(always)]
pub unsafe fn status(status: *const Status) -> neutral::Status {
    if abi::is_ignored(status) {
        return neutral::Status::default();
    }
    // SAFETY: the status is not ignored, so it is readable by the caller's promise.
    unsafe { (*status).to_neutral() }
}

/// Writes a status back.
///
/// # Safety
/// `place` must be null or writable.
#[inline(always)]
pub unsafe fn give_status(place: *mut Status, status: &neutral::Status) {
    if !abi::is_ignored(place) {
        // SAFETY: the place is not ignored, so it is writable by the caller's promise.
        unsafe { *place = Status::from_neutral(status) };
    }
}

/// `MPI_FILE_NULL`: the file on which errors without a file are raised.
pub fn null_file() -> File {
    abi::predefined::null_handle(HandleKind::File)
}

/// Whether collective operations on the object are clocked: it is alive, and no null handle.
///
/// # Safety
/// `object` must be null or a handle, alive or freed.
#[inline(always)]
pub(super) unsafe fn has_clock(object: *mut Object) -> bool {
    // SAFETY: a handle that is not null leads to an object, and objects stay mapped even after they were freed; `has_members` is asked about live ones only.
    unsafe {
        !object.is_null()
            && (*object).magic == crate::ground::object::ALIVE
            && abi::predefined::has_members(object)
    }
}

/// Runs a collective operation on a communicator or file, on its group's clock. For any other object the real MPI
/// is asked for its error. `name` is the function's; `input` is the operation's input as far as it is kept, so that the operation can be begun again.
///
/// # Safety
/// Inside a stub, as `StayKind::Collective`; `call` does nothing but call the lower half.
#[inline(always)]
pub unsafe fn clocked(
    on: *mut Object,
    name: &'static CStr,
    input: Input,
    call: impl FnMut(&'static Dispatch) -> i32,
) -> i32 {
    // SAFETY: the caller is inside a stub as `Place::Collective`, and `call` only calls the lower half.
    unsafe { noted(on, name, input, &Note::NOTHING, call) }
}

/// [`clocked`] for an operation that may be carried out in advance by members that come late.
///
/// # Safety
/// As [`clocked`].
#[inline(always)]
pub unsafe fn noted(
    on: *mut Object,
    name: &'static CStr,
    input: Input,
    note: &Note,
    mut call: impl FnMut(&'static Dispatch) -> i32,
) -> i32 {
    // SAFETY: `has_clock` has found `on` alive, so its clock exists; `call` only calls the lower half, so it may run again after a restart.
    unsafe {
        if !has_clock(on) {
            return cross_near(call);
        }
        note_call(name);
        if two_phase::chosen() && handle::valid(on, HandleKind::Communicator) {
            if let Err(code) = two_phase::begin(on) {
                return code;
            }
            return cross_near(call);
        }
        match input {
            Input::Untouched => collective::repeatable((*on).clock, note, || cross_near(&mut call)),
            Input::Kept(..) | Input::Packed(..) => {
                // An operation whose input is lost begins anew and fails: so its clock counts it.
                let mut lost = 0;
                collective::repeatable((*on).clock, note, || {
                    if lost != 0 {
                        return lost;
                    }
                    let code = cross_near(&mut call);
                    if code == AGAIN {
                        lost = input.put_back();
                    }
                    code
                })
            }
            Input::Met => match collective::meet(on) {
                0 => {
                    collective::begin((*on).clock);
                    cross_near(call)
                }
                code => code,
            },
            Input::Changed => {
                collective::begin((*on).clock);
                cross_near(call)
            }
        }
    }
}

/// Begins a nonblocking collective operation, and again after a restart if no member has been told of its end
/// by then. `call` reads the words of `objects`. `repeatable`: MPI leaves the input as it is.
///
/// # Safety
/// Inside a stub, as `StayKind::Collective`; `place` must be null or writable; `call` does nothing but call the
/// lower half, and all that it refers to stays valid as MPI demands of the arguments.
pub unsafe fn started(
    on: Comm,
    place: PlaceOf<RequestHandle>,
    repeatable: bool,
    objects: &[*mut Object],
    call: impl Fn(&'static Dispatch, *mut Word) -> i32 + 'static,
) -> i32 {
    // SAFETY: `on` is alive if it has a clock; `place` is null or writable, and `call`'s arguments stay valid until the request ends, by the caller's promise.
    unsafe {
        let mut word = 0;
        if !has_clock(on) {
            return cross_near(|lower| call(lower, self::place(place, &mut word)));
        }
        let numbers = request::initiate(on, repeatable);
        let code = cross_near(|lower| call(lower, self::place(place, &mut word)));
        if code == 0 {
            let recipe = Recipe::new(call);
            let request = request::begun_collective(on, word, recipe, objects, numbers);
            give(place, request);
        }
        code
    }
}

/// The name, for people, of the calls that make persistent operations.
const PERSISTENT: &CStr = c"MPI_*_init";

/// Makes a persistent collective operation, now and again after each restart. `call` reads the words of
/// `objects`.
///
/// # Safety
/// Inside a stub, as `StayKind::Collective`; `place` must be null or writable; `call` does nothing but call the
/// lower half, and all that it refers to stays valid as MPI demands of the arguments.
pub unsafe fn persistent(
    on: Comm,
    place: PlaceOf<RequestHandle>,
    repeatable: bool,
    objects: &[*mut Object],
    call: impl Fn(&'static Dispatch, *mut Word) -> i32 + 'static,
) -> i32 {
    // SAFETY: `on` is a live communicator once both tests have passed; `call`'s arguments stay valid until the request is freed, by the caller's promise.
    unsafe {
        let mut word = 0;
        if !has_clock(on) || !handle::valid(on, HandleKind::Communicator) {
            return cross_near(|lower| call(lower, self::place(place, &mut word)));
        }
        let named = match clocks::name(on) {
            Ok(named) => named,
            Err(code) => return code,
        };
        let asked = communicators::body(on).and_then(|body| clocks::to_ask(body, named.number));
        let code = clocked(on, PERSISTENT, Input::Changed, |lower| {
            let asked = (asked.as_ref()).map_or(0, |asked| clocks::ask(on, lower, asked));
            match asked {
                0 => call(lower, self::place(place, &mut word)),
                code => code,
            }
        });
        if code == 0 {
            let recipe = Recipe::new(call);
            let arguments = Arguments::without_message(Kind::Collective, on);
            let request =
                request::from_recipe(&arguments, word, recipe, objects, repeatable, named);
            give(place, request);
        } else {
            clocks::freed(on, named.number);
        }
        code
    }
}

/// Gives the application the request of an operation on a window.
///
/// # Safety
/// As [`started`].
pub unsafe fn one_sided(place: PlaceOf<RequestHandle>, word: Word) {
    // SAFETY: the null request is a predefined object, which always exists; `place` is null or writable, and the word is ours to adopt.
    unsafe {
        let null = abi::predefined::null_handle(HandleKind::Request);
        let request = if word == (*null).lower {
            null
        } else {
            request::adopt(Kind::OneSided, core::ptr::null_mut(), word)
        };
        give(place, request);
    }
}

/// Gives the application the object for a word that the lower half gave: a known one, or a new one.
///
/// # Safety
/// Inside a stub; `place` must be null or writable, `word` a handle of that kind, which is ours from then on.
pub unsafe fn adopt<H: Handle>(kind: HandleKind, place: PlaceOf<H>, word: Word) -> MpiResult {
    // SAFETY: the word is a handle of that kind which nothing else owns, by the caller's promise, and `place` is null or writable.
    unsafe {
        let known = abi::predefined_from_word(kind, word);
        let object = match kind {
            _ if !known.is_null() => known,
            HandleKind::Group => group::adopt(word)?,
            HandleKind::Info => info::adopt(word)?,
            HandleKind::Datatype => datatype::adopt(word)?,
            HandleKind::Communicator => communicators::adopt(word)?,
            _ => handle::create(kind, word, core::ptr::null_mut()),
        };
        give(place, object);
        Ok(())
    }
}

/// Makes sure that the lower half has a group that it is about to get. A value that is not a group is left to the lower half.
///
/// # Safety
/// Inside a stub; `group` must be null or a handle, alive or freed.
pub unsafe fn group_below(group: Group) -> MpiResult {
    // SAFETY: `valid` looks at a handle that may be freed, since objects stay mapped; the group's word is asked for only if it is alive.
    unsafe {
        if handle::valid(group, HandleKind::Group) {
            group::word(group)?;
        }
        Ok(())
    }
}

/// Makes sure that the lower half has an info, in its current state, that it is about to get.
///
/// # Safety
/// As [`group_below`].
pub unsafe fn info_below(info: Info) -> MpiResult {
    // SAFETY: `valid` looks at a handle that may be freed, since objects stay mapped; the info's word is asked for only if it is alive.
    unsafe {
        if handle::valid(info, HandleKind::Info) {
            info::word(info)?;
        }
        Ok(())
    }
}

/// The handle that a tool's variable is bound to: the tool has its address, the lower half gets that of its word.
///
/// # Safety
/// `bound` must be null or point to a handle.
pub unsafe fn tool_object(bound: *mut c_void, word: &mut Word) -> *mut c_void {
    if bound.is_null() {
        return bound;
    }
    // SAFETY: `bound` points to a handle by the tool's promise. The kind is not known, but all kinds of handles are read alike, and objects stay mapped.
    unsafe {
        let object = PlaceOf::<CommHandle>::at(bound.cast()).get();
        if let Some(object) = object.as_ref() {
            *word = object.lower;
        }
    }
    (&raw mut *word).cast()
}
