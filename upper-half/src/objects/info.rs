//! Info objects: lists of keys and values, kept above the crossing.
//!
//! The lower half gets an info of its own only while a function there asks for one ([`word`]).

mod calls;
mod lower;
pub mod pairs;

use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

pub use calls::*;
pub use lower::{adopt, rebuild, rehearse, word};

use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::outcome::{MpiResult, live};
use pairs::Pairs;

/// The data of an info object.
struct Body {
    pairs: Pairs,
    /// The lower half's copy is out of date.
    stale: bool,
}

/// Makes an info object.
pub fn create(pairs: Pairs) -> *mut Object {
    let body = Body { pairs, stale: true };
    let body = Box::into_raw(Box::new(SpinLock::new(body)));
    handle::create(HandleKind::Info, 0, body.cast())
}

/// Lends the body of a live info, if it has one.
///
/// # Safety
/// `object` must be a live info.
unsafe fn body<'a>(object: *mut Object) -> Option<&'a SpinLock<Body>> {
    // SAFETY: the body is the box of `create`, or of `filled`, where another thread may lay it down at this moment.
    unsafe {
        Object::own_part(object)
            .load(Ordering::Acquire)
            .cast::<SpinLock<Body>>()
            .as_ref()
    }
}

/// The keys and values of an info; none for the null info.
///
/// # Safety
/// `object` must be null or a handle; inside a stub.
pub unsafe fn pairs_of(object: *mut Object) -> MpiResult<Pairs> {
    // SAFETY: `object` is null or a handle, by the caller's promise; it is read only if it is alive.
    unsafe {
        if handle::valid(object, HandleKind::Info) && (*object).standard == 304 {
            return Ok(Pairs::new());
        }
        read(object, Pairs::clone)
    }
}

/// Looks at the pairs of an info that must not be the null one.
///
/// # Safety
/// As [`pairs_of`].
unsafe fn read<T>(object: *mut Object, look: impl FnOnce(&Pairs) -> T) -> MpiResult<T> {
    // SAFETY: `live` looks at the handle before its body is read; the pairs are read under their lock.
    unsafe {
        let body = filled(live(object, HandleKind::Info)?)?.lock();
        Ok(look(&body.pairs))
    }
}

/// Changes the pairs of an info of the application's.
///
/// # Safety
/// As [`pairs_of`].
unsafe fn change<T>(object: *mut Object, change: impl FnOnce(&mut Pairs) -> T) -> MpiResult<T> {
    // SAFETY: `live` looks at the handle before its body is read; the pairs are changed under their lock.
    unsafe {
        let mut body = filled(live(object, HandleKind::Info)?)?.lock();
        body.stale = true;
        Ok(change(&mut body.pairs))
    }
}

/// The body of an info. The first question about `MPI_INFO_ENV` fills it with the lower half's values, which stay from then on.
///
/// # Safety
/// `object` must be a live info, not the null one; inside a stub.
unsafe fn filled<'a>(object: *mut Object) -> MpiResult<&'a SpinLock<Body>> {
    // SAFETY: the info is alive, by the caller's promise, and its own part is the box of a locked `Body`. An info without one is the lower half's own.
    unsafe {
        if let Some(body) = body(object) {
            return Ok(body);
        }
        Object::own_part_or(object, || {
            let pairs = lower::read((*object).lower)?;
            let stale = false;
            Ok(SpinLock::new(Body { pairs, stale }))
        })
    }
}

/// Ends an info that has no holder any more.
///
/// # Safety
/// `object` must be a live info of the slab; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the body is the box of `create`; the word is ours.
    unsafe {
        let mut word: Word = std::mem::take(&mut (*object).lower);
        if word != 0 {
            crossing::cross(|d| (d.info_free)(&raw mut word));
        }
        let body = (*object).body.cast::<SpinLock<Body>>();
        if !body.is_null() {
            drop(Box::from_raw(body));
            (*object).body = std::ptr::null_mut();
        }
    }
}
