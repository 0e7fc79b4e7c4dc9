//! The files that the real MPI has open, so that a suspended job closes them.

use std::ffi::c_char;
use std::sync::{Mutex, OnceLock, PoisonError};
use stillpoint_wrappers::standard;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::neutral::Word;

type Open = unsafe extern "C" fn(Word, *const c_char, i32, Word, *mut Word) -> i32;
type Close = unsafe extern "C" fn(*mut Word) -> i32;

/// The open files, in the order of opening: so all ranks close them in the same order.
static OPEN: Mutex<Vec<Word>> = Mutex::new(Vec::new());
/// The table's own functions.
static BELOW: OnceLock<(Open, Close)> = OnceLock::new();

/// Tracks from here on which files are open.
pub fn watch(table: &mut Dispatch) {
    BELOW.get_or_init(|| (table.file_open, table.file_close));
    table.file_open = open;
    table.file_close = close_one;
}

/// Closes all files. Collective, like the opening.
///
/// # Safety
/// MPI must be running, and no other thread calls it any more.
pub unsafe fn close() {
    // A stopped thread of the application may hold the list's lock: then MPI's end closes the files.
    let Ok(open) = OPEN.try_lock().map(|mut open| std::mem::take(&mut *open)) else {
        return;
    };
    let Some((_, close)) = BELOW.get() else {
        return;
    };
    for mut word in open {
        // SAFETY: the caller says that MPI runs; `word` is a file that was opened and not closed, in a place of ours.
        unsafe { close(&mut word) };
    }
}

unsafe extern "C" fn open(
    on: Word,
    name: *const c_char,
    mode: i32,
    hints: Word,
    place: *mut Word,
) -> i32 {
    let Some((below, _)) = BELOW.get() else {
        return standard::ERR_INTERN;
    };
    // SAFETY: the stub passes the arguments of `MPI_File_open`; after a success, `place` holds the new file.
    unsafe {
        let code = below(on, name, mode, hints, place);
        if code == 0 {
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.push(place.read());
        }
        code
    }
}

unsafe extern "C" fn close_one(place: *mut Word) -> i32 {
    let Some((_, below)) = BELOW.get() else {
        return standard::ERR_INTERN;
    };
    // SAFETY: the stub passes the argument of `MPI_File_close`; `place` is read only if it is not null.
    unsafe {
        let word = if place.is_null() { 0 } else { place.read() };
        let code = below(place);
        if code == 0 {
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|known| *known != word);
        }
        code
    }
}
