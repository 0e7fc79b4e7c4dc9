//! Conversions between neutral values and the library's that take more than one expression.
//!
//! If the two forms differ, the real MPI gets places of ours. Its results are then written to the stub's place in the neutral form. A null place stays null, so
//! that MPI sees the application's own pointer.

use core::ffi::c_void;

use super::library::{self, abi};
use stillpoint_wrappers::neutral::{Status, Word};

/// Converts a word to a handle of any of the bindings' types: a handle is as wide as a word, and has its bits.
///
/// # Safety
/// `H` must be a handle type of the library.
#[inline(always)]
pub unsafe fn handle<H: Copy>(word: Word) -> H {
    const { assert!(size_of::<H>() == size_of::<Word>()) }
    // SAFETY: the caller says that `H` is a handle type, for which any bits are a value; it is as wide as a word.
    unsafe { core::mem::transmute_copy(&word) }
}

/// Converts a pointer to an optional function pointer of any type of the bindings.
///
/// # Safety
/// `F` must be an optional function pointer, and `function` null or a function of that type.
#[inline(always)]
pub unsafe fn function<F: Copy>(function: *const c_void) -> F {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) }
    // SAFETY: the caller says that `F` is an optional function pointer, for which null is `None`, and that any other value is a function of its type.
    unsafe { core::mem::transmute_copy(&function) }
}

/// The values that a library gets if there is no place for a result: for one value, and for an array.
pub trait Ignored {
    const ONE: usize = 0;
    const ALL: usize = 0;
}

impl Ignored for i32 {}

impl Ignored for abi::Status {
    const ONE: usize = abi::STATUS_IGNORE;
    const ALL: usize = abi::STATUSES_IGNORE;
}

/// A place for one value in the library's form.
pub struct Own<T> {
    value: T,
    null: bool,
}

impl<T: Ignored> Own<T> {
    /// Returns the place for MPI to write to.
    #[inline(always)]
    pub fn place<P>(&mut self) -> *mut P {
        if self.null {
            core::ptr::without_provenance_mut(T::ONE)
        } else {
            (&raw mut self.value).cast()
        }
    }

    /// Returns the place for MPI to read from.
    #[inline(always)]
    pub fn given<P>(&self) -> *const P {
        if self.null {
            core::ptr::without_provenance(T::ONE)
        } else {
            (&raw const self.value).cast()
        }
    }
}

/// Makes a status to write to. Source, tag and error are converted, because MPI leaves some of them unchanged; other fields are lost.
///
/// # Safety
/// `status` must be null or readable.
#[inline(always)]
pub unsafe fn status(status: *const Status) -> Own<abi::Status> {
    // SAFETY: the caller gives null or a status that can be read; the reference ends with this call.
    match unsafe { status.as_ref() } {
        Some(status) => Own {
            value: library::blank(status),
            null: false,
        },
        None => Own {
            value: abi::Status::default(),
            null: true,
        },
    }
}

/// Makes a status to read from, or to change in part.
///
/// # Safety
/// `status` must be null or readable.
#[inline(always)]
pub unsafe fn given_status(status: *const Status) -> Own<abi::Status> {
    // SAFETY: the caller gives null or a status that can be read; the reference ends with this call.
    match unsafe { status.as_ref() } {
        Some(status) => Own {
            value: library::given(status),
            null: false,
        },
        None => Own {
            value: abi::Status::default(),
            null: true,
        },
    }
}

impl Own<abi::Status> {
    /// # Safety
    /// `status` must be the pointer that [`status`] or [`given_status`] was given; unless it is null, it must be writable.
    #[inline(always)]
    pub unsafe fn give(&self, status: *mut Status) {
        if !self.null {
            // SAFETY: the caller gives the status that `self` was made from, which is not null here, and has it written to.
            unsafe { *status = library::written(&self.value, (*status).error) };
        }
    }
}

/// Makes a place for an integer that MPI writes.
///
/// # Safety
/// `place` must be null or readable.
#[inline(always)]
pub unsafe fn integer(place: *const i32, from_neutral: impl Fn(i32) -> i32) -> Own<i32> {
    // SAFETY: the caller gives null or an integer that can be read; the reference ends with this call.
    match unsafe { place.as_ref() } {
        Some(value) => Own {
            value: from_neutral(*value),
            null: false,
        },
        None => Own {
            value: 0,
            null: true,
        },
    }
}

impl Own<i32> {
    /// # Safety
    /// `place` must be the pointer that [`integer`] was given; unless it is null, it must be writable.
    #[inline(always)]
    pub unsafe fn give(&self, place: *mut i32, to_neutral: impl Fn(i32) -> i32) {
        if !self.null {
            // SAFETY: the caller gives the place that `self` was made from, which is not null here, and has it written to.
            unsafe { *place = to_neutral(self.value) };
        }
    }
}

/// Places for an array in the library's form.
pub struct OwnArray<T> {
    values: Vec<T>,
    null: bool,
}

impl<T: Ignored> OwnArray<T> {
    /// Returns the place for MPI to write to.
    pub fn place<P>(&mut self) -> *mut P {
        if self.null {
            core::ptr::without_provenance_mut(T::ALL)
        } else {
            self.values.as_mut_ptr().cast()
        }
    }

    /// Returns the place for MPI to read from.
    pub fn given<P>(&self) -> *const P {
        if self.null {
            core::ptr::without_provenance(T::ALL)
        } else {
            self.values.as_ptr().cast()
        }
    }
}

/// Returns the elements of a stub's array; none if the count is not positive.
///
/// # Safety
/// `array` must be null or have `count` elements.
unsafe fn slice<'a, T>(array: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: the caller gives an array of `count` elements, and it is not null; the callers' references end before the array can change.
        Ok(count) if !array.is_null() => unsafe { core::slice::from_raw_parts(array, count) },
        _ => &[],
    }
}

/// Makes an array of statuses.
///
/// # Safety
/// `statuses` must be null or have `count` elements.
pub unsafe fn statuses(statuses: *const Status, count: i32) -> OwnArray<abi::Status> {
    // SAFETY: the caller gives null or an array of `count` statuses.
    let given = unsafe { slice(statuses, count) };
    OwnArray {
        values: given.iter().map(library::blank).collect(),
        null: statuses.is_null(),
    }
}

impl OwnArray<abi::Status> {
    /// # Safety
    /// `statuses` must be the pointer that [`statuses`] was given; its elements must be writable.
    pub unsafe fn give(&self, statuses: *mut Status) {
        for (index, status) in self.values.iter().enumerate() {
            // SAFETY: the caller says that each element can be written to, and there are as many as were read from the array.
            unsafe {
                let place = statuses.add(index);
                *place = library::written(status, (*place).error);
            }
        }
    }
}

/// Makes an array of integers.
///
/// # Safety
/// `integers` must be null or have `count` elements.
pub unsafe fn integers(
    integers: *const i32,
    count: i32,
    from_neutral: impl Fn(i32) -> i32,
) -> OwnArray<i32> {
    // SAFETY: the caller gives null or an array of `count` integers.
    let given = unsafe { slice(integers, count) };
    OwnArray {
        values: given.iter().map(|value| from_neutral(*value)).collect(),
        null: integers.is_null(),
    }
}

impl OwnArray<i32> {
    /// # Safety
    /// `integers` must be the pointer that [`integers`] was given; its elements must be writable.
    pub unsafe fn give(&self, integers: *mut i32, to_neutral: impl Fn(i32) -> i32) {
        for (index, value) in self.values.iter().enumerate() {
            // SAFETY: the caller says that each element can be written to, and there are as many as were read from the array.
            unsafe { *integers.add(index) = to_neutral(*value) };
        }
    }
}
