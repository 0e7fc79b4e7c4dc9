//! Fortran handles: the integers by which Fortran programs know our objects (f2c and c2f).
//!
//! The numbers of predefined handles are constants of `mpif.h`; an object made by the application gets
//! the next free one of its kind when it is first asked for.

use stillpoint_wrappers::gate::HandleKind;

use super::mirror;
use crate::ground::above::above;
use crate::ground::description::first_free_number;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;

/// Kinds are numbered from 1.
const KINDS: usize = HandleKind::Session as usize + 1;

struct Table {
    objects: Vec<*mut Object>,
    free: Vec<i32>,
}

static TABLES: SpinLock<[Table; KINDS]> = SpinLock::new(
    [const {
        Table {
            objects: Vec::new(),
            free: Vec::new(),
        }
    }; KINDS],
);

impl Table {
    fn room_for(&mut self, number: usize) {
        if self.objects.len() <= number {
            self.objects.resize(number + 1, std::ptr::null_mut());
        }
    }
}

/// Enters a predefined object under the number that `mpif.h` has for it, and lays out what the Fortran layer
/// finds in it.
///
/// # Safety
/// `object` must be a predefined object with the room of its kind; no other thread may be inside MPI.
pub unsafe fn predefine(object: *mut Object, number: i32) {
    // SAFETY: the caller's object.
    unsafe {
        if let (Ok(place), Some(table)) = (
            usize::try_from(number),
            TABLES.lock().get_mut(usize::from((*object).kind)),
        ) {
            table.room_for(place);
            if let Some(entry) = table.objects.get_mut(place) {
                *entry = object;
            }
            // Names of one datatype share its first number.
            if (*object).fortran < 0 {
                (*object).fortran = number;
            }
        }
        mirror::mirror(object);
    }
}

/// The Fortran number of an object; it gets one if it has none.
///
/// # Safety
/// `object` must be a live object.
pub unsafe fn to_fortran(object: *mut Object) -> i32 {
    // SAFETY: the caller's object.
    unsafe {
        if (*object).fortran >= 0 {
            return (*object).fortran;
        }
        let mut tables = TABLES.lock();
        let kind = (*object).kind;
        let Some(table) = tables.get_mut(usize::from(kind)) else {
            return -1;
        };
        let number = match table.free.pop() {
            Some(number) => number,
            None => table.objects.len().max(first_free_number(kind) as usize) as i32,
        };
        table.room_for(number as usize);
        if let Some(entry) = table.objects.get_mut(number as usize) {
            *entry = object;
        }
        (*object).fortran = number;
        if kind == HandleKind::Request as u16 {
            (above().known_to_fortran)(object);
        }
        mirror::renumber(object);
        number
    }
}

/// The object that a Fortran number stands for; null where there is none.
pub fn from_fortran(kind: HandleKind, number: i32) -> *mut Object {
    let tables = TABLES.lock();
    let place = usize::try_from(number).ok();
    place
        .and_then(|place| tables.get(kind as usize)?.objects.get(place).copied())
        .unwrap_or(std::ptr::null_mut())
}

/// Takes an object's number back when the object ends.
///
/// # Safety
/// `object` must be an object of the slab.
pub unsafe fn forget(object: *mut Object) {
    // SAFETY: the caller's object.
    unsafe {
        let number = (*object).fortran;
        if number < 0 {
            return;
        }
        (*object).fortran = -1;
        let mut tables = TABLES.lock();
        if let Some(table) = tables.get_mut(usize::from((*object).kind)) {
            if let Some(entry) = table.objects.get_mut(number as usize) {
                *entry = std::ptr::null_mut();
            }
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
            assert_eq!((first, second), (1, 2));
            assert_eq!(to_fortran(one), first);
            assert_eq!(from_fortran(HandleKind::File, second), two);
            handle::recycle(one);
            assert!(from_fortran(HandleKind::File, first).is_null());
            let three = make();
            assert_eq!(to_fortran(three), first);
        }
        assert!(from_fortran(HandleKind::File, 99).is_null());
        assert!(from_fortran(HandleKind::File, -1).is_null());
    }
}
