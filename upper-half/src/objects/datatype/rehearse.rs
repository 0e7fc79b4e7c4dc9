//! The rehearsal of datatypes: whether a datatype's recipe makes the datatype that exists.

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::{body, construct};
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::outcome::{MpiResult, check};
use crate::objects::rehearsal_outcome::{Tried, differs, failed, without_recipe};

/// The measures of a datatype that messages and files see.
#[derive(Debug, Default, PartialEq, Eq)]
struct Measures {
    size: i64,
    lower_bound: i64,
    extent: i64,
    true_lower_bound: i64,
    true_extent: i64,
}

/// # Safety
/// Inside MPI; `word` must be a datatype of the lower half's.
unsafe fn measure(word: Word) -> MpiResult<Measures> {
    let mut it = Measures::default();
    // SAFETY: `word` is a datatype of the lower half's, by the caller's promise; the measures are written to a local variable.
    unsafe {
        check(crossing::cross(|d| (d.type_size_x)(word, &raw mut it.size)))?;
        let (bound, extent) = (&raw mut it.lower_bound, &raw mut it.extent);
        check(crossing::cross(|d| {
            (d.type_get_extent_x)(word, bound, extent)
        }))?;
        let (bound, extent) = (&raw mut it.true_lower_bound, &raw mut it.true_extent);
        check(crossing::cross(|d| {
            (d.type_get_true_extent_x)(word, bound, extent)
        }))?;
    }
    Ok(it)
}

/// Makes each datatype once more, compares the two, and frees the new one.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rehearse() -> Tried {
    for object in handle::live(HandleKind::Datatype) {
        // SAFETY: live datatypes; their recipes' parts are held by them.
        unsafe {
            let recipe = body(object).and_then(|body| body.recipe.as_ref());
            let name = recipe.map_or("", |recipe| recipe.combiner.name());
            let what = format!("datatype {} ({name})", (*object).id);
            let recipe = recipe.ok_or_else(|| without_recipe(&what))?;
            let made = construct::construct(recipe).map_err(|error| failed(&what, error))?;
            let same = compare(object, made);
            free(object, made);
            if !same.map_err(|error| failed(&what, error))? {
                return Err(differs(&what));
            }
        }
    }
    Ok(())
}

/// # Safety
/// As [`rehearse`]; `object` must be a live datatype, `made` one of the lower half's.
unsafe fn compare(object: *mut Object, made: Word) -> MpiResult<bool> {
    // SAFETY: `object` is a live datatype and `made` one of the lower half's, by the caller's promise.
    unsafe { Ok(measure((*object).lower)? == measure(made)?) }
}

/// Frees the new datatype, unless the real MPI gave the old one once more (as it does for Fortran's selected kinds).
///
/// # Safety
/// As [`compare`].
unsafe fn free(object: *mut Object, mut made: Word) {
    // SAFETY: `made` is ours unless it is the old one, by the caller's promise, so it is freed once.
    unsafe {
        if made != (*object).lower {
            crossing::cross(|d| (d.type_free)(&raw mut made));
        }
    }
}
