//! Fortran handles: the integers by which Fortran programs know our objects (f2c and c2f).
//!
//! The numbers of predefined handles are constants of `mpif.h`; an object made by the application gets
//! the next free one of its kind when its number is first asked for. If handles are numbers in C, those of predefined handles are the same, and
//! in no table here. If all handles of a kind are numbers of 32 bits, those of made objects are the same, too.

use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;

use super::mirror;
use crate::ground::abi::predefined::numbered;
use crate::ground::description::{FIRST_NUMBER, first_free_number, narrow};
use crate::ground::lock::SpinLock;
use crate::ground::narrow::{are_narrow, at, number_of, place_of as place_of_handle};
use crate::ground::object::Object;
use crate::ground::upward_calls::above;

/// Kinds are numbered from 1.
const KINDS: usize = HandleKind::Session as usize + 1;

struct NumberTable {
    /// From [`FIRST_NUMBER`] on.
    objects: Vec<*mut Object>,
    free: Vec<i32>,
}

static TABLES: SpinLock<[NumberTable; KINDS]> = SpinLock::new(
    [const {
        NumberTable {
            objects: Vec::new(),
            free: Vec::new(),
        }
    }; KINDS],
);

/// The place of a number in a table, or `None` if it can have none.
fn place_of(number: i32) -> Option<usize> {
    usize::try_from(number.checked_sub(FIRST_NUMBER)?).ok()
}

impl NumberTable {
    /// Enters an object under a number.
    fn enter(&mut self, number: i32, object: *mut Object) {
        let Some(place) = place_of(number) else {
            return;
        };
        if self.objects.len() <= place {
            self.objects.resize(place + 1, std::ptr::null_mut());
        }
        if let Some(entry) = self.objects.get_mut(place) {
            *entry = object;
        }
    }
}

/// Enters a predefined object under the number that `mpif.h` has for it, and lays out the fields for the Fortran
/// layer in it.
///
/// # Safety
/// `object` must be a predefined object with the room of its kind; no other thread may be inside MPI.
pub unsafe fn predefine(object: *mut Object, number: i32) {
    // SAFETY: the object is predefined and has the room of its kind, by the caller's promise; no other thread is inside MPI.
    unsafe {
        if are_narrow((*object).kind) {
            // The number is the handle.
        } else if let Some(table) = TABLES.lock().get_mut(usize::from((*object).kind))
            && number >= 0
        {
            table.enter(number, object);
            // Several names of one datatype share its first number.
            if (*object).fortran < 0 {
                (*object).fortran = number;
            }
        }
        mirror::mirror(object);
    }
}

/// The Fortran number of an object; it gets one if it has none. Threads that ask at once get the same.
///
/// # Safety
/// `object` must be a live object.
pub unsafe fn to_fortran(object: *mut Object) -> i32 {
    // SAFETY: the object is alive, by the caller's promise.
    unsafe {
        if are_narrow((*object).kind) {
            return match (*object).predefined() {
                true => (*object).fortran,
                false => number_of(object),
            };
        }
        let place = Object::number(object);
        let known = place.load(Ordering::Acquire);
        if known >= 0 {
            return known;
        }
        let mut tables = TABLES.lock();
        // Another thread may have been first.
        let known = place.load(Ordering::Acquire);
        if known >= 0 {
            return known;
        }
        let kind = (*object).kind;
        let Some(table) = tables.get_mut(usize::from(kind)) else {
            return -1;
        };
        let number = match table.free.pop() {
            Some(number) => number,
            None => first_free_number(kind).max(FIRST_NUMBER + table.objects.len() as i32),
        };
        table.enter(number, object);
        if kind == HandleKind::Request as u16 {
            (above().known_to_fortran)(object);
        }
        mirror::renumber(object, number);
        place.store(number, Ordering::Release);
        number
    }
}

/// The object that a Fortran number stands for, or null.
pub fn from_fortran(kind: HandleKind, number: i32) -> *mut Object {
    if narrow(kind).is_some() {
        return match place_of_handle(kind, number) {
            Some(place) => at(place),
            None => numbered(kind, number),
        };
    }
    let predefined = numbered(kind, number);
    // SAFETY: null, or the object of a predefined handle.
    if unsafe { predefined.as_ref() }.is_some_and(|it| it.kind == kind as u16) {
        return predefined;
    }
    let tables = TABLES.lock();
    place_of(number)
        .and_then(|place| tables.get(kind as usize)?.objects.get(place).copied())
        .unwrap_or(std::ptr::null_mut())
}

/// Takes an object's number back when the object ends.
///
/// # Safety
/// `object` must be an object of the slab.
pub unsafe fn forget(object: *mut Object) {
    // SAFETY: the object is one of the slab's, by the caller's promise, and is about to end, so no other thread uses it.
    unsafe {
        let number = (*object).fortran;
        if number < 0 {
            return;
        }
        (*object).fortran = -1;
        let mut tables = TABLES.lock();
        if let Some(table) = tables.get_mut(usize::from((*object).kind)) {
            table.enter(number, std::ptr::null_mut());
            table.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::handle;

    #[test]
    fn numbers_are_given_once_kept_and_reused() {
        let make = || handle::create(HandleKind::File, 0, std::ptr::null_mut());
        let (one, two) = (make(), make());
        // SAFETY: the objects are the test's own.
        unsafe {
            let (first, second) = (to_fortran(one), to_fortran(two));
            let least = first_free_number(HandleKind::File as u16);
            assert_eq!((first, second), (least, least + 1));
            assert_eq!(to_fortran(one), first);
            assert_eq!(from_fortran(HandleKind::File, second), two);
            handle::recycle(one);
            assert!(from_fortran(HandleKind::File, first).is_null());
            let three = make();
            assert_eq!(to_fortran(three), first);
        }
        assert!(from_fortran(HandleKind::File, 9999).is_null());
        assert!(from_fortran(HandleKind::File, -1).is_null());
    }

    #[test]
    fn threads_that_ask_at_once_get_the_same_number() {
        const THREADS: usize = 4;
        const ROUNDS: usize = 200;
        let made: Vec<usize> = (0..ROUNDS)
            .map(|_| handle::create(HandleKind::Window, 0, std::ptr::null_mut()).addr())
            .collect();
        let start = std::sync::Barrier::new(THREADS);
        let numbers_of = || -> Vec<i32> {
            let mut numbers = Vec::new();
            for object in &made {
                start.wait();
                let object = std::ptr::with_exposed_provenance_mut(*object);
                // SAFETY: the objects are the test's own, and alive until the threads have ended.
                numbers.push(unsafe { to_fortran(object) });
            }
            numbers
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(numbers_of)).collect();
            let numbers: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
            assert!(numbers.iter().all(|it| *it == numbers[0]));
        });
        for object in made {
            // SAFETY: the objects are the test's own, and the threads have ended.
            unsafe { handle::recycle(std::ptr::with_exposed_provenance_mut(object)) };
        }
    }
}
