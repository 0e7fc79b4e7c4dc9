//! The inventory: the MPI objects that are alive, as JSON, for a reader of an image.
//!
//! ```json
//! {"communicators": [{"id": 257, "name": "MPI_COMM_WORLD", "kind": "intra", "size": 4, "rank": 0, ...}],
//!  "datatypes": [{"id": 65540, "combiner": "vector", "committed": true, "held": 1}],
//!  "windows": [{"id": 65561, "flavor": "allocate", "bytes": 4096, "size": 4, "epochs": ["lock_all"], ...}],
//!  "groups": 1, "operators": 0, "infos": 0, "errhandlers": 0, "attributes": 0,
//!  "requests": 2,
//!  "files": [{"id": 65545, "communicator": 257, "rank": 0, "path": "/scratch/out", "mode": 34, "position": 0, "shared": 0}],
//!  "alloc_mem": {"blocks": 0, "bytes": 0}}
//! ```
//!
//! For its own process, the lower half reads the open files there (`capture::mpi_files` in the lower half).

use std::fmt::Write;
use std::sync::atomic::Ordering;

use stillpoint_wrappers::gate::HandleKind;

use crate::communicators;
use crate::ground::handle;
use crate::ground::hooks::HOOKS;
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::objects::{attribute, datatype, file, memory};
use crate::operations::request;
use crate::windows;

static TEXT: SpinLock<String> = SpinLock::new(String::new());

/// Writes the inventory anew, and tells the agent where it is.
///
/// # Safety
/// Parked on the driver thread, every other thread stopped.
pub unsafe fn refresh() {
    let mut text = TEXT.lock();
    text.clear();
    // SAFETY: the caller is parked on the driver thread, and every other thread is stopped. Writing into a string cannot fail.
    let _ = unsafe { write(&mut text) };
    HOOKS
        .inventory
        .store(text.as_ptr() as u64, Ordering::Release);
    HOOKS
        .inventory_bytes
        .store(text.len() as u64, Ordering::Release);
}

/// Writes a string in JSON's quotes; bytes that are not UTF-8 are replaced.
fn quoted(text: &mut String, bytes: &[u8]) -> std::fmt::Result {
    text.push('"');
    for letter in String::from_utf8_lossy(bytes).chars() {
        match letter {
            '"' | '\\' => write!(text, "\\{letter}")?,
            control if control < ' ' => write!(text, "\\u{:04x}", control as u32)?,
            other => text.push(other),
        }
    }
    text.push('"');
    Ok(())
}

/// Lists things between brackets.
fn list<T>(
    text: &mut String,
    things: &[T],
    mut one: impl FnMut(&mut String, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    text.push('[');
    for (number, thing) in things.iter().enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        one(text, thing)?;
    }
    text.push(']');
    Ok(())
}

/// # Safety
/// As [`refresh`].
unsafe fn write(text: &mut String) -> std::fmt::Result {
    let mut communicators = Vec::new();
    communicators::for_each_live(|object| communicators.push(object));
    text.push_str("{\"communicators\": ");
    // SAFETY: live objects of their kinds.
    list(text, &communicators, |text, object| unsafe {
        one_communicator(text, *object)
    })?;
    text.push_str(", \"datatypes\": ");
    let datatypes = handle::live(HandleKind::Datatype);
    // SAFETY: `live` gives live datatypes only, and no other thread runs that could end one.
    list(text, &datatypes, |text, object| unsafe {
        one_datatype(text, *object)
    })?;
    text.push_str(", \"windows\": ");
    let windows = handle::live(HandleKind::Window);
    // SAFETY: `live` gives live windows only, and no other thread runs that could end one.
    list(text, &windows, |text, object| unsafe {
        one_window(text, *object)
    })?;
    for (name, kind) in [
        ("groups", HandleKind::Group),
        ("operators", HandleKind::Operator),
        ("infos", HandleKind::Info),
        ("errhandlers", HandleKind::Errhandler),
    ] {
        write!(text, ", \"{name}\": {}", handle::live(kind).len())?;
    }
    write!(text, ", \"requests\": {}", request::live().len())?;
    text.push_str(", \"files\": ");
    let files = handle::live(HandleKind::File);
    // SAFETY: `live` gives live files only, and no other thread runs that could end one.
    list(text, &files, |text, object| unsafe {
        one_file(text, *object)
    })?;
    let (blocks, bytes) = memory::in_use();
    write!(
        text,
        ", \"attributes\": {}, \"alloc_mem\": {{\"blocks\": {blocks}, \"bytes\": {bytes}}}}}",
        attribute::store::STORE.lock().count()
    )
}

/// # Safety
/// `object` must be a live communicator.
unsafe fn one_communicator(text: &mut String, object: *mut Object) -> std::fmt::Result {
    // SAFETY: `object` is a live communicator, by the caller's promise; the notes are read under their lock.
    unsafe {
        let (id, size, rank) = ((*object).id, (*object).size, (*object).rank);
        write!(text, "{{\"id\": {id}, \"size\": {size}, \"rank\": {rank}")?;
        write!(text, ", \"held\": {}", Object::held_by(object))?;
        if let Some(body) = communicators::body(object) {
            let inter = body
                .members
                .as_ref()
                .is_some_and(|members| members.remote.is_some());
            write!(
                text,
                ", \"kind\": \"{}\"",
                if inter { "inter" } else { "intra" }
            )?;
            if let Some(topology) = &body.topology {
                write!(text, ", \"topology\": \"{}\"", topology.name())?;
            }
            let notes = body.notes.lock();
            if notes.freed {
                text.push_str(", \"freed\": true");
            }
            if let Some(name) = communicators::name_of(object, &notes) {
                text.push_str(", \"name\": ");
                quoted(text, &name)?;
            }
        }
        text.push('}');
        Ok(())
    }
}

/// # Safety
/// `object` must be a live datatype.
unsafe fn one_datatype(text: &mut String, object: *mut Object) -> std::fmt::Result {
    // SAFETY: `object` is a live datatype, by the caller's promise; the notes are read under their lock.
    unsafe {
        write!(
            text,
            "{{\"id\": {}, \"held\": {}",
            (*object).id,
            Object::held_by(object)
        )?;
        if let Some(body) = datatype::body(object) {
            if let Some(recipe) = &body.recipe {
                write!(text, ", \"combiner\": \"{}\"", recipe.combiner.name())?;
            }
            let notes = body.notes.lock();
            write!(text, ", \"committed\": {}", notes.committed)?;
            if let Some(name) = &notes.name {
                text.push_str(", \"name\": ");
                quoted(text, name)?;
            }
        }
        text.push('}');
        Ok(())
    }
}

/// The mode has the standard ABI's bits.
///
/// # Safety
/// `object` must be a live file.
unsafe fn one_file(text: &mut String, object: *mut Object) -> std::fmt::Result {
    // SAFETY: `object` is a live file, by the caller's promise, and holds its communicator.
    unsafe {
        write!(text, "{{\"id\": {}", (*object).id)?;
        if let Some(body) = file::body(object) {
            let (on, rank) = ((*body.communicator).id, (*body.communicator).rank);
            write!(text, ", \"communicator\": {on}, \"rank\": {rank}")?;
            if let Some(recipe) = &body.recipe {
                text.push_str(", \"path\": ");
                quoted(text, recipe.file())?;
                write!(text, ", \"mode\": {}", recipe.mode)?;
            }
            let notes = body.notes.lock();
            if !body.is_sequential() {
                let position = notes.standing.position;
                write!(text, ", \"position\": {position}")?;
            }
            if let Some(shared) = notes.standing.shared {
                write!(text, ", \"shared\": {shared}")?;
            }
            if notes.view.is_some() {
                text.push_str(", \"view\": true");
            }
        }
        text.push('}');
        Ok(())
    }
}

/// # Safety
/// `object` must be a live window.
unsafe fn one_window(text: &mut String, object: *mut Object) -> std::fmt::Result {
    // SAFETY: `object` is a live window, by the caller's promise; the notes are read under their lock.
    unsafe {
        write!(text, "{{\"id\": {}", (*object).id)?;
        if let Some(body) = windows::body(object) {
            let (bytes, size) = (body.size, body.members.len());
            let flavor = body.flavor.name();
            write!(text, ", \"flavor\": \"{flavor}\", \"bytes\": {bytes}")?;
            write!(text, ", \"size\": {size}, \"epochs\": ")?;
            list(text, &body.epochs(), |text, epoch| {
                write!(text, "\"{epoch}\"")
            })?;
            let notes = body.notes.lock();
            write!(text, ", \"attached\": {}", notes.attached.len())?;
            if let Some(name) = &notes.name {
                text.push_str(", \"name\": ");
                quoted(text, name)?;
            }
        }
        text.push('}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_json() {
        let mut text = String::new();
        quoted(&mut text, b"a\"b\\c\n\xff").unwrap();
        assert_eq!(text, "\"a\\\"b\\\\c\\u000a\u{fffd}\"");
    }

    #[test]
    fn the_inventory_is_one_json_object() {
        let kept = handle::create(HandleKind::Window, 0, std::ptr::null_mut());
        // SAFETY: no other thread of the test makes communicators or datatypes.
        unsafe { refresh() };
        let text = TEXT.lock().clone();
        assert!(text.starts_with("{\"communicators\": ["), "{text}");
        assert!(text.contains("\"windows\": [{\"id\": "), "{text}");
        assert!(text.ends_with("}}"), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        // SAFETY: the test made the object, and uses it no more.
        unsafe { handle::recycle(kept) };
    }
}
