//! Datatypes: each remembers how it was made. That answers the application's questions, and makes the datatype
//! again after a restart.
//!
//! A datatype that the application has freed lives on while a request or another datatype uses it.

mod calls;
mod construct;
mod constructors;
mod contents;
mod f90;
#[cfg(not(application = "openmpi"))]
pub mod large_arguments;
mod legacy;
mod names;
pub mod recipe;
mod rehearse;
mod words;

use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

pub use calls::*;
pub use constructors::*;
pub use contents::*;
pub use f90::*;
pub use legacy::*;
pub use names::*;
pub use rehearse::rehearse;
pub use words::{adopt, by_word};

use crate::ground::abi;
use crate::ground::abi::predefined::null_word;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::outcome::{MpiResult, class, live};
use crate::objects::{attribute, errhandler};
use recipe::Recipe;

/// The data of a datatype. Predefined ones get it when they are given a name.
pub struct Body {
    /// Absent for a predefined datatype.
    pub recipe: Option<Recipe>,
    pub notes: SpinLock<Notes>,
}

/// The part of a datatype that changes in its life.
#[derive(Default)]
pub struct Notes {
    pub committed: bool,
    /// A name of the application's.
    pub name: Option<Vec<u8>>,
    /// One of the datatypes of `MPI_Type_create_f90_*`, which cannot be freed.
    pub lasting: bool,
    /// The arguments that it reports instead of its recipe's.
    #[cfg(not(application = "openmpi"))]
    pub asked: Option<Box<large_arguments::ConstructorArguments>>,
}

/// The body of a live datatype.
///
/// # Safety
/// `object` must be a live datatype.
pub unsafe fn body<'a>(object: *mut Object) -> Option<&'a Body> {
    // SAFETY: the body is the box of `create`, or of `names`, where another thread may lay it down at this moment.
    unsafe {
        Object::own_part(object)
            .load(Ordering::Acquire)
            .cast::<Body>()
            .as_ref()
    }
}

/// Makes a datatype out of its recipe, in the lower half too. The recipe's datatypes are held.
///
/// # Safety
/// Inside a stub; the recipe's datatypes must be live.
pub unsafe fn create(recipe: Recipe) -> MpiResult<*mut Object> {
    // SAFETY: the recipe's datatypes are alive, by the caller's promise, and the new one holds them from here on.
    unsafe {
        let word = construct::construct(&recipe)?;
        for part in &recipe.datatypes {
            handle::retain(*part);
        }
        let notes = SpinLock::new(Notes::default());
        let body = Box::new(Body {
            recipe: Some(recipe),
            notes,
        });
        let object = handle::create(HandleKind::Datatype, word, Box::into_raw(body).cast());
        words::note(word, object);
        Ok(object)
    }
}

/// A datatype that a function may be given (any but the null one).
///
/// # Safety
/// `datatype` must be null or a handle.
pub unsafe fn usable(datatype: *mut Object) -> MpiResult<*mut Object> {
    // SAFETY: `datatype` is null or a handle, by the caller's promise.
    unsafe { live(datatype, HandleKind::Datatype) }
}

/// Ends a datatype that has no holder any more, in the lower half too.
///
/// # Safety
/// `object` must be a live datatype of the slab; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the datatype has no holder any more, by the caller's promise, so no other code uses its body; it has held what its recipe is made of.
    unsafe {
        errhandler::forget(object);
        attribute::forget(object);
        let mut word: Word = std::mem::take(&mut (*object).lower);
        words::forget(word);
        crossing::cross(|d| (d.type_free)(&raw mut word));
        let body = (*object).body.cast::<Body>();
        (*object).body = std::ptr::null_mut();
        if !body.is_null() {
            let body = Box::from_raw(body);
            for part in body.recipe.iter().flat_map(|recipe| &recipe.datatypes) {
                handle::release(*part);
            }
            #[cfg(not(application = "openmpi"))]
            if let Some(asked) = body.notes.lock().asked.take() {
                for part in asked.datatypes {
                    handle::release(part);
                }
            }
        }
    }
}

/// Called once when MPI has started: notes the sizes of predefined datatypes' elements, for code that remembers an operation or keeps its input.
///
/// # Safety
/// Inside a stub; predefined objects have their words.
pub unsafe fn note_sizes() {
    for (entry, object) in abi::predefined_handles() {
        // SAFETY: predefined objects, which no other code uses yet.
        unsafe {
            let (word, mut size) = ((*object).lower, 0);
            let is_one = entry.kind == HandleKind::Datatype && word != null_word(entry.kind);
            if !is_one || crossing::cross(|d| (d.type_size)(word, &raw mut size)) != 0 {
                continue;
            }
            (*object).size = size;
            let (mut first, mut extent) = (0, 0);
            let code =
                crossing::cross(|d| (d.type_get_extent)(word, &raw mut first, &raw mut extent));
            if code == 0 && first == 0 && i64::from(size) == extent as i64 && size > 0 {
                (*object).between = size as u64;
            }
        }
    }
}

/// Makes all datatypes again in a fresh lower half: in order of creation, so that the parts of a datatype
/// always exist before it.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rebuild() -> MpiResult {
    words::forget_all();
    for object in handle::live(HandleKind::Datatype) {
        // SAFETY: live datatypes; their recipes' parts are held by them.
        unsafe {
            let body = body(object).ok_or(class::INTERN)?;
            let recipe = body.recipe.as_ref().ok_or(class::INTERN)?;
            let mut word = construct::construct(recipe)?;
            if body.notes.lock().committed {
                crate::objects::outcome::check(crossing::cross(|d| {
                    (d.type_commit)(&raw mut word)
                }))?;
            }
            (*object).lower = word;
            words::note(word, object);
        }
    }
    Ok(())
}
