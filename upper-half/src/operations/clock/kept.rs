//! Input that lies in the buffer for the result (`MPI_IN_PLACE`). MPI may change it before the operation is over. The input is copied before the
//! operation begins, and put back if the operation begins anew after a restart.
//!
//! Up to [`BESIDE`] bytes lie on the stack of the stub that is written out (`arch::collective`); up to [`MOST`] are copied by the long way. Larger
//! input is not copied: its operation binds.
//!
//! Rules: as in `collective`. Only memory that MPI itself is about to read is copied.

use core::ffi::c_void;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi;
use crate::ground::arch;
use crate::ground::crossing::cross;
use crate::ground::handle;
pub use crate::ground::keeps::Keeps;
use crate::ground::object::{Comm, Datatype};

/// Bytes that a stub has on its stack.
pub const BESIDE: usize = arch::KEPT_BESIDE;

/// Bytes that the long way copies at most: about a sixteenth of the time that the operation itself takes.
pub const MOST: usize = 16 << 10;

/// The input of a blocking operation, as a restart needs it to begin the operation anew.
pub enum Input {
    /// MPI leaves it as it is.
    Untouched,
    /// MPI changes it, and there is no copy: the operation binds when it is begun.
    Changed,
    /// A copy, and the address that it came from.
    Kept(Vec<u8>, *mut u8),
}

impl Input {
    /// The input of an operation that leaves it as it is, or changes it.
    #[inline(always)]
    pub fn untouched(is_untouched: bool) -> Input {
        if is_untouched {
            Input::Untouched
        } else {
            Input::Changed
        }
    }

    /// Copies the input of an operation in place, if it is small.
    ///
    /// # Safety
    /// Inside a stub; the arguments must be the application's, handles alive, freed or null.
    #[cold]
    pub unsafe fn in_place(
        keeps: Keeps,
        buffer: *mut c_void,
        count: i32,
        datatype: Datatype,
        on: Comm,
    ) -> Input {
        // SAFETY: both handles are alive once they are checked; MPI demands that the buffer holds the input, whose first and last byte bound `region`.
        unsafe {
            if !handle::valid(on, HandleKind::Communicator)
                || !handle::valid(datatype, HandleKind::Datatype)
            {
                return Input::Changed;
            }
            let Some((from, bytes)) = region(keeps, buffer, count, datatype, on) else {
                return Input::Changed;
            };
            Input::Kept(core::slice::from_raw_parts(from, bytes).to_vec(), from)
        }
    }

    /// Puts the copy back, if there is one.
    ///
    /// # Safety
    /// The application must be inside the operation still.
    pub unsafe fn put_back(&self) {
        if let Input::Kept(copy, to) = self {
            // SAFETY: the copy came from there, and MPI has the application leave the buffer to the operation until it is over.
            unsafe { to.copy_from_nonoverlapping(copy.as_ptr(), copy.len()) };
        }
    }
}

/// The address and length of the input of an operation in place, if it is not longer than [`MOST`].
///
/// # Safety
/// Inside a stub; `datatype` and `on` must be alive.
unsafe fn region(
    keeps: Keeps,
    buffer: *mut c_void,
    count: i32,
    datatype: Datatype,
    on: Comm,
) -> Option<(*mut u8, usize)> {
    // SAFETY: `on` is a live communicator, by the caller's promise.
    let (blocks, before) = unsafe {
        match keeps {
            Keeps::Nothing => return None,
            Keeps::Once => (1, 0),
            Keeps::EachMember => ((*on).size, 0),
            Keeps::OwnBlock => (1, (*on).rank),
        }
    };
    let elements = i64::from(count).checked_mul(i64::from(blocks))?;
    if elements == 0 {
        return Some((core::ptr::NonNull::dangling().as_ptr(), 0));
    }
    if buffer.is_null() || elements < 0 || elements > MOST as i64 {
        return None;
    }
    // SAFETY: `datatype` is alive, by the caller's promise.
    let (stride, first, length) = unsafe { layout(datatype)? };
    let bytes = stride.checked_mul(elements - 1)?.checked_add(length)?;
    let start = (i64::from(before) * i64::from(count)).checked_mul(stride)? + first;
    if bytes > MOST as i64 {
        return None;
    }
    Some((
        buffer.cast::<u8>().wrapping_offset(start as isize),
        bytes as usize,
    ))
}

/// The layout of a datatype: the distance of its elements, the offset of an element's content, and its length.
///
/// # Safety
/// It must be alive.
unsafe fn layout(datatype: Datatype) -> Option<(i64, i64, i64)> {
    // SAFETY: `datatype` is alive, by the caller's promise; all numbers go into local variables.
    unsafe {
        if let Ok(between) = i64::try_from((*datatype).between) {
            return Some((between, 0, between));
        }
        let (mut lowest, mut stride, mut first, mut length) = (0, 0, 0, 0);
        let code = cross(|d| {
            let word = abi::word(HandleKind::Datatype, datatype);
            match (d.type_get_extent)(word, &raw mut lowest, &raw mut stride) {
                0 => (d.type_get_true_extent)(word, &raw mut first, &raw mut length),
                code => code,
            }
        });
        let usual = code == 0 && stride >= 0 && length >= 0;
        usual.then_some((stride as i64, first as i64, length as i64))
    }
}

/// Puts back the copy that a stub has kept on its stack, beside its `arguments` in registers: the end of an operation that begins anew.
///
/// # Safety
/// The stub must have made the `copy`.
pub unsafe extern "C" fn put_back(
    arguments: &[usize; 6],
    copy: *const u8,
    on: Comm,
    keeps: Keeps,
    has_counts_of_both: u32,
) {
    let first = if has_counts_of_both != 0 { 3 } else { 1 };
    let (to, count) = (
        arguments[first] as *mut u8,
        arguments[first + 1] as u32 as usize,
    );
    let datatype = arguments[first + 2] as Datatype;
    // SAFETY: the stub has computed the same from the same arguments, which are predefined or alive.
    unsafe {
        let block = (*datatype).between as usize * count;
        let (bytes, before) = match keeps {
            Keeps::Nothing => return,
            Keeps::Once => (block, 0),
            Keeps::EachMember => (block * (*on).size as usize, 0),
            Keeps::OwnBlock => (block, block * (*on).rank as usize),
        };
        if bytes <= BESIDE {
            to.add(before).copy_from_nonoverlapping(copy, bytes);
        }
    }
}
