//! Input that lies in the buffer for the result (`MPI_IN_PLACE`). MPI may change it before the operation is over. The input is copied before the
//! operation begins, and put back if the operation begins anew after a restart.
//!
//! Up to [`BESIDE`] bytes lie on the stack of the stub that is written out (`arch::collective`); up to [`most`] are copied by the long way. Only the input's own
//! bytes are copied and put back: other threads may write between them meanwhile, and nothing says that all of it is mapped. The real MPI packs and unpacks
//! datatypes with gaps.
//!
//! Larger input is not copied. If the operation needs every member anyway, its members meet in a barrier first, which can be begun anew: while one is late,
//! nobody has begun, and the input is whole. All members decide alike, by the size of the data, which is the same for all. Any other operation binds.
//!
//! Rules: as in `collective`. Only memory that MPI itself is about to read is copied.

use core::ffi::{c_int, c_void};

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi;
use crate::ground::arch;
use crate::ground::crossing::{StayKind, cross};
use crate::ground::handle;
pub use crate::ground::keeps::Keeps;
use crate::ground::object::{Comm, Datatype};
use crate::objects::communicator;

/// Bytes that a stub has on its stack.
pub const BESIDE: usize = arch::KEPT_BESIDE;

/// Bytes that the long way copies at most, about a sixteenth of the time that the operation itself takes: more with more members, since a barrier of these takes
/// longer.
const fn most(members: i32) -> i64 {
    const OF_FEW: i64 = 16 << 10;
    OF_FEW << ((members.cast_unsigned() | 1).ilog2() / 3)
}

/// The input of a blocking operation, as a restart needs it to begin the operation anew.
pub enum Input {
    /// MPI leaves it as it is.
    Untouched,
    /// MPI changes it, and there is no copy: the operation binds when it is begun.
    Changed,
    /// As [`Input::Changed`], and the members meet before any of them begins.
    Met,
    /// A copy, and the address that it came from.
    Kept(Vec<u8>, *mut u8),
    /// A copy of elements with gaps, packed by the real MPI.
    Packed(Vec<u8>, Elements),
}

/// Elements in the application's memory.
#[derive(Clone, Copy)]
pub struct Elements {
    buffer: *mut c_void,
    count: i32,
    datatype: Datatype,
    on: Comm,
}

impl Elements {
    /// Copies the elements, which have `bytes` bytes.
    ///
    /// # Safety
    /// Inside a stub; the buffer must hold the elements, datatype and communicator must be alive.
    unsafe fn pack(&self, bytes: usize) -> Option<Vec<u8>> {
        let (mut size, mut position) = (0, 0);
        // SAFETY: both handles are alive, by the caller's promise; the copy has as much room as the real MPI says, and the elements are read only.
        unsafe {
            let datatype = abi::word(HandleKind::Datatype, self.datatype);
            let on = abi::word(HandleKind::Communicator, self.on);
            let code = cross(|d| (d.pack_size)(self.count, datatype, on, &raw mut size));
            let room = usize::try_from(size).ok().filter(|it| *it >= bytes)?;
            if code != 0 {
                return None;
            }
            let mut copy = vec![0; room];
            let to = copy.as_mut_ptr().cast();
            let (from, count) = (self.buffer.cast_const(), self.count);
            let code = cross(|d| (d.pack)(from, count, datatype, to, size, &raw mut position, on));
            copy.truncate(usize::try_from(position).ok()?);
            (code == 0).then_some(copy)
        }
    }

    /// Puts a copy back. Returns the error.
    ///
    /// # Safety
    /// As [`Input::put_back`]; the copy must be of these elements.
    unsafe fn unpack(&self, copy: &[u8]) -> i32 {
        let mut position = 0;
        let (to, count) = (self.buffer, self.count);
        let (from, bytes) = (copy.as_ptr().cast(), copy.len() as i32);
        // SAFETY: the operation that has these arguments goes on, so they are alive as they were; what is written are the elements' own bytes. The thread has a
        // record. The operation was taken back and is not begun yet: so the thread names no clock meanwhile.
        unsafe {
            let before = arch::inside();
            arch::set_inside(StayKind::Collective as u32);
            let datatype = abi::word(HandleKind::Datatype, self.datatype);
            let on = abi::word(HandleKind::Communicator, self.on);
            let code =
                cross(|d| (d.unpack)(from, bytes, &raw mut position, to, count, datatype, on));
            arch::set_inside(before);
            code
        }
    }
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

    /// Copies the input of an operation in place, if it is small. `needs_all`: no member's operation is over before all have begun it.
    ///
    /// # Safety
    /// Inside a stub; the arguments must be the application's, handles alive, freed or null.
    #[cold]
    pub unsafe fn in_place(
        keeps: Keeps,
        needs_all: bool,
        buffer: *mut c_void,
        count: i32,
        datatype: Datatype,
        on: Comm,
    ) -> Input {
        // SAFETY: `on` is read once it is known to be alive; the rest is the caller's.
        unsafe {
            if !may_be_in_place(on) {
                return Input::Changed;
            }
            let count = i64::from(count);
            let part = match keeps {
                Keeps::Nothing => return Input::Changed,
                Keeps::Once => Part::whole(count),
                Keeps::EachMember => Part::whole(count * i64::from((*on).size)),
                Keeps::OwnBlock => Part {
                    first: count * i64::from((*on).rank),
                    elements: count,
                    decisive: count,
                },
            };
            part.input(needs_all, buffer, datatype, on)
        }
    }

    /// [`Input::in_place`] of an operation with a count for each member: the input is all blocks, or this member's own, at its place of `places`.
    ///
    /// # Safety
    /// As [`Input::in_place`].
    #[cold]
    pub unsafe fn blocks_in_place(
        needs_all: bool,
        buffer: *mut c_void,
        counts: *const c_int,
        places: Option<*const c_int>,
        datatype: Datatype,
        on: Comm,
    ) -> Input {
        // SAFETY: `on` is read once it is known to be alive; MPI demands a count and a place for each member.
        unsafe {
            if !may_be_in_place(on)
                || counts.is_null()
                || places.is_some_and(<*const c_int>::is_null)
            {
                return Input::Changed;
            }
            let (size, rank) = ((*on).size as usize, (*on).rank as usize);
            let counts = core::slice::from_raw_parts(counts, size);
            if counts.iter().any(|count| *count < 0) {
                return Input::Changed;
            }
            let all = counts.iter().map(|count| i64::from(*count)).sum();
            let part = match places {
                None => Part::whole(all),
                Some(places) => Part {
                    first: places.add(rank).read().into(),
                    elements: counts[rank].into(),
                    decisive: all,
                },
            };
            part.input(needs_all, buffer, datatype, on)
        }
    }

    /// The input of an operation that needs all, of whose data no member knows how much there is.
    ///
    /// # Safety
    /// `on` must be a handle, alive, freed or null.
    #[cold]
    pub unsafe fn met(on: Comm) -> Input {
        // SAFETY: the communicator is read once it is known to be alive.
        match unsafe { may_be_in_place(on) && (*on).size > 1 } {
            true => Input::Met,
            false => Input::Changed,
        }
    }

    /// Puts the copy back, if there is one. Returns the error.
    ///
    /// # Safety
    /// The application must be inside the operation still.
    pub unsafe fn put_back(&self) -> i32 {
        // SAFETY: the copy came from there, and MPI has the application leave the buffer to the operation until it is over.
        unsafe {
            match self {
                Input::Untouched | Input::Changed | Input::Met => {}
                Input::Kept(copy, to) => to.copy_from_nonoverlapping(copy.as_ptr(), copy.len()),
                Input::Packed(copy, elements) => return elements.unpack(copy),
            }
        }
        0
    }
}

/// Whether operations on a communicator may be in place: it has this process as a member, and one group.
///
/// # Safety
/// `on` must be a handle, alive, freed or null.
unsafe fn may_be_in_place(on: Comm) -> bool {
    // SAFETY: the communicator is read once it is known to be alive; `MPI_COMM_NULL` has rank -1.
    unsafe {
        handle::valid(on, HandleKind::Communicator)
            && (0..(*on).size).contains(&(*on).rank)
            && !communicator::is_inter(on)
    }
}

/// The elements of a buffer that are the input of an operation in place.
struct Part {
    first: i64,
    elements: i64,
    /// As many elements decide whether the input is large. All members have as many, or as much in other elements.
    decisive: i64,
}

impl Part {
    fn whole(elements: i64) -> Part {
        Part {
            first: 0,
            elements,
            decisive: elements,
        }
    }

    /// Copies the elements, if they are few.
    ///
    /// # Safety
    /// As [`Input::in_place`]; `on` must be alive.
    unsafe fn input(
        &self,
        needs_all: bool,
        buffer: *mut c_void,
        datatype: Datatype,
        on: Comm,
    ) -> Input {
        // SAFETY: `datatype` is used once it is known to be alive; `on` is, by the caller's promise. MPI demands that the buffer holds the input.
        unsafe {
            if self.elements < 0 || !handle::valid(datatype, HandleKind::Datatype) {
                return Input::Changed;
            }
            // Members may give equal data in different layouts, some of them by `MPI_BOTTOM`: only its size may decide.
            let bytes = size(datatype).map(|size| size.checked_mul(self.decisive));
            if bytes.is_some_and(|bytes| bytes.is_none_or(|bytes| bytes > most((*on).size))) {
                return match needs_all {
                    true => Input::met(on),
                    false => Input::Changed,
                };
            }
            self.copied(buffer, datatype, on).unwrap_or(Input::Changed)
        }
    }

    /// # Safety
    /// As [`Part::input`]; `datatype` must be alive.
    unsafe fn copied(&self, buffer: *mut c_void, datatype: Datatype, on: Comm) -> Option<Input> {
        if self.elements == 0 {
            return Some(Input::Untouched);
        }
        if buffer.is_null() {
            return None;
        }
        // SAFETY: `datatype` is alive, by the caller's promise. A region without gaps is nothing but input.
        unsafe {
            let layout = Layout::of(datatype)?;
            let bytes = usize::try_from(layout.size.checked_mul(self.elements)?).ok()?;
            let start = self.first.checked_mul(layout.stride)?;
            let at = |offset: i64| buffer.cast::<u8>().wrapping_offset(offset as isize);
            if layout.is_whole(self.elements) {
                let from = at(start + layout.first);
                let copy = core::slice::from_raw_parts(from, bytes).to_vec();
                return Some(Input::Kept(copy, from));
            }
            let elements = Elements {
                buffer: at(start).cast(),
                count: i32::try_from(self.elements).ok()?,
                datatype,
                on,
            };
            Some(Input::Packed(elements.pack(bytes)?, elements))
        }
    }
}

/// Returns the bytes of an element, without gaps.
///
/// # Safety
/// Inside a stub; `datatype` must be alive.
unsafe fn size(datatype: Datatype) -> Option<i64> {
    // SAFETY: `datatype` is alive, by the caller's promise; the size goes into a local variable.
    unsafe {
        if let Ok(between) = i64::try_from((*datatype).between) {
            return Some(between);
        }
        let mut size = 0;
        let word = abi::word(HandleKind::Datatype, datatype);
        let code = cross(|d| (d.type_size_x)(word, &raw mut size));
        (code == 0 && size >= 0).then_some(size)
    }
}

/// The layout of a datatype.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of an element, without gaps.
    size: i64,
    /// The distance of two elements.
    stride: i64,
    /// The offset of an element's first byte.
    first: i64,
    /// The distance from there to its end.
    length: i64,
}

impl Layout {
    /// Whether that many elements have no gaps, neither in them nor between them.
    fn is_whole(&self, elements: i64) -> bool {
        self.size == self.length && (elements == 1 || self.stride == self.size)
    }

    /// The layout of a datatype.
    ///
    /// # Safety
    /// It must be alive.
    unsafe fn of(datatype: Datatype) -> Option<Layout> {
        // SAFETY: `datatype` is alive, by the caller's promise; all numbers go into local variables.
        unsafe {
            if let Ok(between) = i64::try_from((*datatype).between) {
                return Some(Layout {
                    size: between,
                    stride: between,
                    first: 0,
                    length: between,
                });
            }
            let (mut size, mut lowest, mut stride, mut first, mut length) = (0, 0, 0, 0, 0);
            let code = cross(|d| {
                let word = abi::word(HandleKind::Datatype, datatype);
                match (d.type_size)(word, &raw mut size) {
                    0 => {}
                    code => return code,
                }
                match (d.type_get_extent)(word, &raw mut lowest, &raw mut stride) {
                    0 => (d.type_get_true_extent)(word, &raw mut first, &raw mut length),
                    code => code,
                }
            });
            let layout = Layout {
                size: size.into(),
                stride: stride as i64,
                first: first as i64,
                length: length as i64,
            };
            (code == 0 && size >= 0 && length >= 0).then_some(layout)
        }
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

#[cfg(test)]
mod tests {
    use super::{Layout, most};

    fn layout(size: i64, stride: i64, length: i64) -> Layout {
        let first = 0;
        Layout {
            size,
            stride,
            first,
            length,
        }
    }

    #[test]
    fn more_is_copied_where_a_barrier_takes_longer() {
        let kilobytes = [1, 2, 7, 8, 63, 64, 512, 4096].map(|members| most(members) >> 10);
        assert_eq!(kilobytes, [16, 16, 16, 32, 32, 64, 128, 256]);
    }

    #[test]
    fn gaps_lie_in_elements_or_between_them() {
        assert!(layout(8, 8, 8).is_whole(3));
        assert!(layout(8, 32, 8).is_whole(1));
        assert!(!layout(8, 32, 8).is_whole(2));
        assert!(!layout(8, 8, 12).is_whole(1));
        assert!(!layout(12, 16, 16).is_whole(1));
        assert!(!layout(8, -8, 8).is_whole(2));
    }
}
