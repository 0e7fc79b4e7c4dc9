//! Files at a still point: split collective operations come to their end, and the real MPI tells each file's state.

use std::sync::atomic::Ordering;

use stillpoint_refusals::Code;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

use super::{Body, Recipe, Split, Standing, body, name_of};
use crate::ground::abi;
use crate::ground::crossing::cross;
use crate::ground::handle;
use crate::ground::hindrances::Text;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::objects::outcome::{MpiResult, check};
use crate::objects::rehearsal_outcome::Tried;

/// The failure of the last [`at_still_point`], if there was one.
static UNKNOWN: SpinLock<Option<String>> = SpinLock::new(None);

/// The live files that a restart opens again.
///
/// # Safety
/// Inside MPI; what is lent is to be used while they are alive.
pub(super) unsafe fn carried<'a>() -> Vec<(*mut Object, &'a Body, &'a Recipe)> {
    let live = handle::live(HandleKind::File).into_iter();
    // SAFETY: `live` gives live files, whose bodies stay as long as the caller uses them, by its promise.
    live.filter_map(|file| unsafe {
        let body = body(file)?;
        Some((file, body, body.recipe.as_ref()?))
    })
    .collect()
}

/// A file's state, as the real MPI tells it.
///
/// # Safety
/// Inside MPI; `word` must be a file of the lower half's.
pub(super) unsafe fn standing(word: Word, body: &Body) -> MpiResult<Standing> {
    let mut found = Standing::default();
    let mut shared = 0;
    // SAFETY: `word` is a file of the lower half's, by the caller's promise; the numbers go into local variables.
    unsafe {
        check(cross(|d| (d.file_get_atomicity)(word, &mut found.atomic)))?;
        // A position that the real MPI does not tell may be kept elsewhere until the file is closed (Open MPI's `individual` shared pointers).
        if body.shares.load(Ordering::Relaxed) {
            check(cross(|d| (d.file_get_position_shared)(word, &mut shared)))?;
            found.shared = Some(shared);
        }
        check(cross(|d| (d.file_get_position)(word, &mut found.position)))?;
    }
    Ok(found)
}

/// Asks for each file's state, to learn whether it can be found out.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn rehearse() -> Tried {
    // SAFETY: every other thread is stopped, by the caller's promise; `carried` gives live files with their own bodies.
    unsafe {
        for (file, body, recipe) in carried() {
            standing((*file).lower, body).map_err(|error| told(recipe, error))?;
        }
    }
    Ok(())
}

fn told(recipe: &Recipe, error: i32) -> String {
    let (name, error) = (name_of(recipe), abi::error_from_neutral(error));
    format!("the real MPI does not say where {name} stands: error class {error}")
}

/// Ends the split collective operations, which all members have begun, and writes down each file's state. Nothing else is pending on any
/// file.
///
/// # Safety
/// As [`rehearse`].
pub unsafe fn at_still_point() {
    let mut unknown = None;
    // SAFETY: every other thread is stopped, by the caller's promise; a split operation's buffer is still the library's, since its end was not told.
    unsafe {
        for (file, body, recipe) in carried() {
            let mut notes = body.notes.lock();
            if let Some(Split::Begun(end, buffer)) = notes.split {
                let (word, mut status) = ((*file).lower, Status::default());
                let code = cross(|d| end(d, word, buffer, &mut status));
                notes.split = Some(Split::Ended(status, code));
            }
            match standing((*file).lower, body) {
                Ok(standing) => notes.standing = standing,
                Err(error) => unknown = Some(told(recipe, error)),
            }
        }
    }
    *UNKNOWN.lock() = unknown;
}

/// Whether the last [`at_still_point`] could not find something out.
pub fn failed() -> bool {
    UNKNOWN.lock().is_some()
}

/// Describes that failure.
pub fn describe(text: &mut Text) {
    if let Some(unknown) = UNKNOWN.lock().take() {
        text.reason(Code::MpiFilePosition, format_args!("{unknown}"));
    }
}
