//! Opening files again in a fresh real MPI.

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use super::still::{carried, standing};
use super::{Body, Recipe, mode, name_of};
use crate::ground::abi;
use crate::ground::abi::predefined::null_word;
use crate::ground::crossing::cross;
use crate::ground::handle;
use crate::ground::object::Object;
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, class};
use crate::objects::{communicator, info};
use stillpoint_wrappers::standard;

/// Neutral `MPI_SEEK_SET`.
const SET: i32 = 403;

/// Bits of a mode that count only when a file is first opened.
const NOT_AGAIN: i32 = mode::CREATE | mode::EXCLUSIVE | mode::APPEND;

/// Opens every file again. Collective: all members of a communicator have the same files open on it, opened in the same
/// order; so members never wait for each other in a circle. An error comes with the file that could not be opened.
///
/// # Safety
/// Inside MPI, on the one thread that runs; communicators and datatypes have their words.
pub unsafe fn rebuild() -> Result<(), (String, i32)> {
    // SAFETY: only this thread runs, by the caller's promise; `carried` gives live files, which hold their communicators.
    unsafe {
        let mut files = carried();
        // The sort keeps those of one communicator in the order in which they were opened.
        files.sort_by_key(|(_, body, _)| {
            communicator::body(body.communicator).map(|body| body.identity)
        });
        for (file, body, recipe) in files {
            again(file, body, recipe).map_err(|error| (name_of(recipe), error))?;
        }
    }
    Ok(())
}

/// # Safety
/// As [`rebuild`].
unsafe fn again(file: *mut Object, body: &Body, recipe: &Recipe) -> MpiResult {
    // SAFETY: the file holds its communicator and the datatypes of its view, which have their words, by the caller's promise; the strings are the body's.
    unsafe {
        let how = mode::below(recipe.mode) & !NOT_AGAIN;
        let (on, path) = ((*body.communicator).lower, recipe.path.as_ptr());
        let mut word = 0;
        with_hints(&recipe.hints, |hints| {
            cross(|d| (d.file_open)(on, path, how, hints, &mut word))
        })?;
        (*file).lower = word;
        let notes = body.notes.lock();
        if let Some(view) = &notes.view {
            let (elementary, filetype) = ((*view.elementary).lower, (*view.filetype).lower);
            let (from, name) = (view.displacement, view.representation.as_ptr());
            with_hints(&view.hints, |hints| {
                cross(|d| (d.file_set_view)(word, from, elementary, filetype, name, hints))
            })?;
        }
        if !notes.hints.is_empty() {
            with_hints(&notes.hints, |hints| {
                cross(|d| (d.file_set_info)(word, hints))
            })?;
        }
        let expected = notes.standing;
        if expected.atomic != 0 {
            check(cross(|d| (d.file_set_atomicity)(word, expected.atomic)))?;
        }
        if let Some(shared) = agreed(body, expected.shared)? {
            check(cross(|d| (d.file_seek_shared)(word, shared, SET)))?;
        }
        check(cross(|d| (d.file_seek)(word, expected.position, SET)))?;
        // A silent difference is worse than a missing file.
        match standing(word, body)? == expected {
            true => Ok(()),
            false => Err(class::FILE),
        }
    }
}

/// The position of a file's shared pointer: ranks that have used the pointer know it.
///
/// # Safety
/// As [`rebuild`]; collective over the file's members.
unsafe fn agreed(file: &Body, known: Option<i64>) -> MpiResult<Option<i64>> {
    // SAFETY: the file holds its communicator, which is one of this world; the buffers are as large as is said.
    unsafe {
        let members = communicator::body(file.communicator).and_then(|it| it.members.as_ref());
        let members = members.map_or(0, |it| it.local.len());
        let mine = known.unwrap_or(-1);
        let mut all = vec![-1i64; members];
        let byte = (*abi::predefined(HandleKind::Datatype, standard::BYTE)).lower;
        let (on, bytes) = ((*file.communicator).lower, size_of::<i64>() as i32);
        let (from, to) = ((&raw const mine).cast(), all.as_mut_ptr().cast());
        check(cross(|d| {
            (d.allgather)(from, bytes, byte, to, bytes, byte, on)
        }))?;
        Ok(all.into_iter().max().filter(|position| *position >= 0))
    }
}

/// Lends the lower half an info with these hints, for one call.
///
/// # Safety
/// Inside MPI; `call` does nothing but call the lower half.
unsafe fn with_hints(hints: &Pairs, call: impl FnOnce(Word) -> i32) -> MpiResult {
    if hints.is_empty() {
        return check(call(null_word(HandleKind::Info)));
    }
    let object = info::create(hints.clone());
    // SAFETY: the info is made for this one call, which only calls the lower half, and ends with it.
    unsafe {
        let code = info::word(object).map(call);
        handle::release(object);
        check(code?)
    }
}
