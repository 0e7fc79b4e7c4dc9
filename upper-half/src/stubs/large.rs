//! Functions with large counts (`MPI_Send_c` and its like): the parts that the generated twins share.
//!
//! If an int holds a count, the smaller function gets it. A larger count becomes one element of a datatype of that many, which the application never sees
//! (`typed`). A layout with larger numbers is made of parts that know no such numbers (`layouts`). A reduction that is over when it returns goes in parts
//! ([`in_parts`]). For the rest - lists of counts, other reductions - a number that is too large for an int is refused by name, with MPI's error. Some twins
//! are written by hand (`written`).

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, Count, DatatypeHandle, Handle, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross};
use crate::ground::object::Comm;
use crate::objects::errhandler::raise;
use crate::objects::outcome::class;
use crate::operations::request::{self, Recipe};

pub mod layouts;
mod typed;
mod written;

pub use typed::Typed;

/// Refuses a number that is too large for an int.
///
/// # Safety
/// In a stub, not inside yet.
#[cold]
pub unsafe fn too_large(name: &'static CStr) -> c_int {
    let _inside = crossing::enter();
    crate::stubs::crash::say(format_args!(
        "stillpoint: {}: a number that is too large for an int is not carried here",
        name.to_str().unwrap_or_default(),
    ));
    // SAFETY: inside; no object is named.
    unsafe { raise(ptr::null_mut(), class::COUNT, name) }
}

/// The most elements of a part: a power of two, which keeps the boundaries at which an implementation cuts.
const PART: Count = 1 << 30;

/// Reduces one part after the other, by the smaller function: `reduce(FROM, COUNT)` does so for that many elements, from that many bytes on. Every process has
/// the same parts, since all have the same count.
///
/// # Safety
/// In a stub, not inside yet; `count` must not be negative.
#[cold]
pub unsafe fn in_parts(
    count: Count,
    datatype: DatatypeHandle,
    name: &'static CStr,
    mut reduce: impl FnMut(isize, c_int) -> c_int,
) -> c_int {
    let (mut first, mut extent) = (0, 0);
    {
        let _inside = crossing::enter();
        // SAFETY: inside; the real MPI checks its arguments, and the places are ours.
        unsafe {
            let word = abi::word(HandleKind::Datatype, datatype.object());
            let code = cross(|lower| (lower.type_get_extent)(word, &mut first, &mut extent));
            if code != 0 {
                return raise(ptr::null_mut(), code, name);
            }
        }
    }
    let mut done = 0;
    while done < count {
        let part = (count - done).min(PART);
        // Within the application's buffer, as MPI demands.
        let code = reduce((done as isize).wrapping_mul(extent), part as c_int);
        if code != 0 {
            return code;
        }
        done += part;
    }
    0
}

/// The address that many bytes behind the beginning of a buffer, unless that is `MPI_IN_PLACE`.
pub fn behind(buffer: *const c_void, bytes: isize) -> *const c_void {
    match abi::is_in_place(buffer) {
        true => buffer,
        false => buffer.wrapping_byte_offset(bytes),
    }
}

/// A number as an int, if that holds it.
pub fn int(number: Count) -> Option<c_int> {
    c_int::try_from(number).ok()
}

/// The number in a place of the application's, as an int, or 0 if there is no place.
///
/// # Safety
/// `place` must be null or readable.
pub unsafe fn read(place: *const Count) -> Option<c_int> {
    // SAFETY: `place` is null or readable, by the caller's promise; the number is copied.
    unsafe { place.as_ref() }.map_or(Some(0), |number| int(*number))
}

/// The smaller function's place for its result: null if the application has no place.
pub fn place(outer: *const Count, narrow: &mut c_int) -> *mut c_int {
    match outer.is_null() {
        true => ptr::null_mut(),
        false => narrow,
    }
}

/// Gives the smaller function's result to the application.
///
/// # Safety
/// `place` must be null or writable.
pub unsafe fn write(place: *mut Count, narrow: c_int, code: c_int) {
    if code == 0 && !place.is_null() {
        // SAFETY: the place is not null here, so it is writable, by the caller's promise.
        unsafe { *place = narrow.into() };
    }
}

/// The number of elements in a list, by the communicator.
///
/// # Safety
/// In a stub, not inside yet; `comm` must be null or lead to an object.
pub unsafe fn processes(comm: Comm, count: impl FnOnce(Comm) -> usize) -> usize {
    let _inside = crossing::enter();
    count(comm)
}

/// A list of numbers as ints.
pub struct Ints {
    is_null: bool,
    numbers: Box<[c_int]>,
}

impl Ints {
    /// Returns `None` if a number is too large.
    ///
    /// # Safety
    /// `list` must be null or have that many elements.
    pub unsafe fn new(list: *const Count, length: usize) -> Option<Self> {
        let is_null = list.is_null();
        let length = if is_null { 0 } else { length };
        // SAFETY: every index is below `length`, and a list that is not null has so many elements, by the caller's promise.
        let numbers = (0..length).map(|at| int(unsafe { *list.add(at) }));
        Some(Self {
            is_null,
            numbers: numbers.collect::<Option<_>>()?,
        })
    }

    /// The list.
    pub fn list(&self) -> *const c_int {
        match self.is_null {
            true => ptr::null(),
            false => self.numbers.as_ptr(),
        }
    }
}

/// Keeps lists as long as the request that uses them.
///
/// # Safety
/// In a stub, not inside yet; a nonblocking or persistent operation has just put its request there.
pub unsafe fn keep(request: PlaceOf<RequestHandle>, lists: Vec<Ints>) {
    let _inside = crossing::enter();
    // SAFETY: the operation has just put its request there, so no other code knows it yet; what it still refers to stays in the new recipe.
    unsafe {
        let found = match request.is_null() {
            true => None,
            false => request::of(request.get()).ok().flatten(),
        };
        let recipe = found.and_then(|it| (*it).recipe.take());
        match (found, recipe) {
            (Some(it), Some(recipe)) => {
                (*it).recipe = Some(Recipe::new(move |lower, word| {
                    let _ = &lists;
                    recipe.run(lower, word)
                }));
            }
            // The user of the lists is not known: they stay.
            _ => core::mem::forget(lists),
        }
    }
}
