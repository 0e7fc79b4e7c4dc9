//! The parts of a buffer, according to an MPI function's counts, displacements and datatypes.

use core::ffi::c_int;

use crate::ground::object::Object;

/// Some adjacent elements.
#[derive(Clone, Copy, Debug)]
pub struct ElementRun {
    /// The distance of the first one from the buffer's address: in bytes, or in extents of the datatype.
    pub at: At,
    pub count: usize,
    /// Null: bytes.
    pub datatype: *mut Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Bytes(isize),
    Extents(isize),
}

/// That many elements.
pub fn once(count: c_int, datatype: *mut Object) -> Vec<ElementRun> {
    each(1, count, datatype)
}

/// That many elements for each of `peers`.
pub fn each(peers: usize, count: c_int, datatype: *mut Object) -> Vec<ElementRun> {
    let count = usize::try_from(count).unwrap_or(0).saturating_mul(peers);
    vec![ElementRun {
        at: At::Bytes(0),
        count,
        datatype,
    }]
}

/// That many bytes.
pub fn bytes(count: impl TryInto<usize>) -> Vec<ElementRun> {
    vec![ElementRun {
        at: At::Bytes(0),
        count: count.try_into().unwrap_or(0),
        datatype: core::ptr::null_mut(),
    }]
}

/// For each of `peers` a number of elements, and their distance in extents of the datatype.
///
/// # Safety
/// The lists must be null or have that many entries.
pub unsafe fn listed(
    peers: usize,
    counts: *const c_int,
    displacements: *const c_int,
    datatype: *mut Object,
) -> Vec<ElementRun> {
    if counts.is_null() || displacements.is_null() {
        return Vec::new();
    }
    let part = |index: usize| {
        // SAFETY: the index is below `peers`, and neither list is null here, so both have that many entries, by the caller's promise.
        let (count, at) = unsafe { (*counts.add(index), *displacements.add(index)) };
        ElementRun {
            at: At::Extents(at as isize),
            count: usize::try_from(count).unwrap_or(0),
            datatype,
        }
    };
    (0..peers).map(part).collect()
}

/// For each peer a number of elements, their distance in bytes, and their datatype.
///
/// # Safety
/// The lists must be null or have as many entries as `datatypes`.
pub unsafe fn typed<D: Copy + TryInto<isize>>(
    counts: *const c_int,
    displacements: *const D,
    datatypes: &[*mut Object],
) -> Vec<ElementRun> {
    if counts.is_null() || displacements.is_null() {
        return Vec::new();
    }
    let part = |(index, datatype): (usize, &*mut Object)| {
        // SAFETY: the index is below the number of datatypes, and neither list is null here, so both have as many entries, by the caller's promise.
        let (count, at) = unsafe { (*counts.add(index), *displacements.add(index)) };
        ElementRun {
            at: At::Bytes(at.try_into().unwrap_or(0)),
            count: usize::try_from(count).unwrap_or(0),
            datatype: *datatype,
        }
    };
    datatypes.iter().enumerate().map(part).collect()
}

/// The sum of a list of counts.
///
/// # Safety
/// The list must be null or have that many entries.
pub unsafe fn total(members: usize, counts: *const c_int) -> c_int {
    if counts.is_null() {
        return 0;
    }
    // SAFETY: every index is below `members`, and the list is not null here, so it has that many entries, by the caller's promise.
    (0..members)
        .map(|index| unsafe { *counts.add(index) })
        .sum()
}
