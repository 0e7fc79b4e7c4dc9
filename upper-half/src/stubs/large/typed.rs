//! A count of elements of a datatype that an int does not hold: one element of a datatype that has that many.

use core::ffi::c_int;

use stillpoint_wrappers::gate::HandleKind;

use super::int;
use crate::ground::abi::{self, Aint, Count, DatatypeHandle, Handle, ListOf, PlaceOf};
use crate::ground::crossing::{self, cross};
use crate::stubs::by_hand;

/// Elements of the datatype that a large count is made of.
const BLOCK: Count = 1 << 30;

/// A count of elements of a datatype: as it is, or one element of a datatype that has that many.
pub struct Typed {
    count: c_int,
    datatype: DatatypeHandle,
    made: bool,
}

impl Typed {
    /// Returns `None` if there are too many even for that.
    ///
    /// # Safety
    /// In a stub, not inside yet; `datatype` must be a handle.
    pub unsafe fn new(count: Count, datatype: DatatypeHandle) -> Option<Self> {
        if let Some(count) = int(count) {
            return Some(Self {
                count,
                datatype,
                made: false,
            });
        }
        // SAFETY: `datatype` is a handle, by the caller's promise; MPI's own functions look at it before they use it.
        let datatype = unsafe { many(count, datatype)? };
        Some(Self {
            count: 1,
            datatype,
            made: true,
        })
    }

    pub fn count(&self) -> c_int {
        self.count
    }

    pub fn datatype(&self) -> DatatypeHandle {
        self.datatype
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        if self.made {
            // SAFETY: a datatype of ours; whatever is under way holds it.
            unsafe { by_hand::type_free(PlaceOf::at(&mut self.datatype)) };
        }
    }
}

/// A datatype with that many elements of another, side by side.
///
/// # Safety
/// As [`Typed::new`].
unsafe fn many(count: Count, datatype: DatatypeHandle) -> Option<DatatypeHandle> {
    let null = || DatatypeHandle::of(abi::predefined::null_handle(HandleKind::Datatype));
    let (whole, rest) = (int(count / BLOCK)?, int(count % BLOCK)?);
    if count < 0 {
        return None;
    }
    // SAFETY: handles as MPI asks for them; places of ours.
    unsafe {
        let of = Handle::object(datatype);
        let (mut low, mut extent) = (0, 0);
        {
            let _inside = crossing::enter();
            let word = abi::word(HandleKind::Datatype, of);
            if cross(|lower| (lower.type_get_extent)(word, &mut low, &mut extent)) != 0 {
                return None;
            }
        }
        let width = (extent as i64).checked_mul(count)?;
        let (mut block, mut blocks, mut tail) = (null(), null(), null());
        let (mut all, mut made) = (null(), null());
        let at = PlaceOf::at;
        let object = |handle: DatatypeHandle| Handle::object(handle);
        let mut code = by_hand::type_contiguous(BLOCK as c_int, of, at(&mut block));
        code |= by_hand::type_contiguous(whole, object(block), at(&mut blocks));
        code |= by_hand::type_contiguous(rest, of, at(&mut tail));
        let places = [0, (width - extent as i64 * i64::from(rest)) as Aint];
        let parts = [blocks, tail];
        let parts = ListOf::at(parts.as_ptr());
        let (lengths, places) = ([1, 1], places.as_ptr());
        code |= by_hand::type_create_struct(2, lengths.as_ptr(), places, parts, at(&mut all));
        code |= by_hand::type_create_resized(object(all), low, width as Aint, at(&mut made));
        code |= by_hand::type_commit(at(&mut made));
        for mut part in [block, blocks, tail, all] {
            by_hand::type_free(at(&mut part));
        }
        (code == 0).then_some(made)
    }
}
