//! Open files, and the data with which a restart opens them again.
//!
//! A file object keeps how the application has opened it and what it has set since: view, hints. The real MPI knows the file's state - positions,
//! atomicity - and is asked at the still point ([`still`]). A restart opens every file again on its
//! communicator, sets all that, and checks the result ([`again`]).
//!
//! A file is not carried if its communicator has processes of other worlds, or if its name is not known:
//! then a checkpoint is refused as long as it is open.

mod again;
mod still;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::{Status, Word};

pub use again::rebuild;
pub use still::{at_still_point, describe, failed, rehearse};

use crate::ground::hindrances::{Alive, Reason};
use crate::ground::lock::SpinLock;
use crate::ground::object::Object;
use crate::ground::{arch, handle};
use crate::objects::communicator;
use crate::objects::info::pairs::Pairs;

/// Neutral bits of the mode of a file (`MPI_MODE_*`).
pub mod mode {
    pub const APPEND: i32 = 1;
    pub const CREATE: i32 = 2;
    pub const DELETE_ON_CLOSE: i32 = 4;
    pub const EXCLUSIVE: i32 = 8;
    pub const READ_AND_WRITE: i32 = 32;
    pub const SEQUENTIAL: i32 = 64;

    /// The mode that the real MPI gets.
    ///
    /// `MPI_File_close` of this library deletes a file that is to be deleted when it is closed, because a suspended job closes it too. The real MPI does not
    /// learn that a file is sequential: ROMIO would neither say where its shared pointer stands nor move it. The stubs refuse the calls that this mode forbids.
    /// Together with another mode it is an error, which the real MPI finds.
    pub fn below(asked: i32) -> i32 {
        match asked & READ_AND_WRITE {
            0 => asked & !DELETE_ON_CLOSE & !SEQUENTIAL,
            _ => asked & !DELETE_ON_CLOSE,
        }
    }
}

/// How the application has opened a file.
pub struct Recipe {
    /// The absolute path, behind the name of a file system's driver if the application gave one.
    pub path: CString,
    /// Neutral, as the application has asked for it.
    pub mode: i32,
    pub hints: Pairs,
}

impl Recipe {
    /// The path alone, without the name of a file system's driver.
    pub fn file(&self) -> &[u8] {
        let path = self.path.to_bytes();
        let at = path.iter().position(|it| *it == b'/').unwrap_or(0);
        path.get(at..).unwrap_or(path)
    }
}

/// A file's name in messages.
fn name_of(recipe: &Recipe) -> String {
    format!("the MPI file {}", recipe.path.to_string_lossy())
}

/// The application's view of a file (`MPI_File_set_view`). The datatypes are held.
pub struct View {
    pub displacement: i64,
    pub elementary: *mut Object,
    pub filetype: *mut Object,
    pub representation: CString,
    pub hints: Pairs,
}

/// A function that ends a split collective operation.
pub type End = fn(&'static Dispatch, Word, *mut c_void, *mut Status) -> i32;

/// A split collective operation that the application has begun and not ended.
pub enum Split {
    /// The real MPI has it.
    Begun(End, *mut c_void),
    /// It was ended at a still point: the application is told of that when it asks.
    Ended(Status, i32),
}

/// A file's state, as the real MPI tells it. Positions are in units of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub position: i64,
    /// Absent if this process has not used it.
    pub shared: Option<i64>,
    pub atomic: i32,
}

/// The part of a file that changes while it is open.
#[derive(Default)]
pub struct Notes {
    pub view: Option<View>,
    /// Of `MPI_File_set_info`.
    pub hints: Pairs,
    pub split: Option<Split>,
    pub standing: Standing,
}

/// The data of a file.
pub struct Body {
    /// Held: it lives as long as the file.
    pub communicator: *mut Object,
    /// Absent if the file cannot be carried.
    pub recipe: Option<Recipe>,
    /// Present if it cannot.
    _uncarried: Option<Alive>,
    /// The mode as the application has it.
    pub given_mode: c_int,
    /// This process has used the shared pointer. A pointer that was never used is not asked for: ROMIO makes a file for it beside the other one.
    shares: AtomicBool,
    pub notes: SpinLock<Notes>,
}

impl Body {
    /// The shared pointer is about to be used.
    pub fn shares(&self) {
        self.shares.store(true, Ordering::Relaxed);
    }

    /// Whether the application has a sequential file, and the real MPI has another one.
    pub fn is_sequential(&self) -> bool {
        let asked = self.recipe.as_ref().map_or(0, |recipe| recipe.mode);
        asked & mode::SEQUENTIAL != 0 && mode::below(asked) & mode::SEQUENTIAL == 0
    }
}

/// The body of a live file, or `None` for the null one.
///
/// # Safety
/// `object` must be a live file.
pub unsafe fn body<'a>(object: *mut Object) -> Option<&'a Body> {
    // SAFETY: the body is the box of `opened`.
    unsafe { (*object).body.cast::<Body>().as_ref() }
}

/// The application's name of a file as an absolute path, or `None` if that cannot be told in UTF-8.
///
/// # Safety
/// `name` must be a string.
pub unsafe fn absolute(name: *const c_char) -> Option<CString> {
    const ROOM: usize = 4096;
    // SAFETY: `name` is a string, by the caller's promise, and is only read.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    let (system, name) = match cfg!(application = "openmpi") {
        true => ("", name),
        false => name.split_at(prefix(name)),
    };
    if name.starts_with('/') {
        return CString::new(format!("{system}{name}")).ok();
    }
    let mut room = [0u8; ROOM];
    let directory = CStr::from_bytes_until_nul(arch::working_directory(&mut room)?).ok()?;
    let directory = directory.to_str().ok()?;
    if !directory.starts_with('/') {
        return None;
    }
    let directory = directory.trim_end_matches('/');
    CString::new(format!("{system}{directory}/{name}")).ok()
}

/// The length of a name's prefix that selects ROMIO's file system driver, as MPICH and libraries with its ABI read it.
fn prefix(name: &str) -> usize {
    const SYSTEMS: [&str; 12] = [
        "ufs:", "nfs:", "panfs:", "xfs:", "pvfs2:", "lustre:", "gpfs:", "testfs:", "daos:", "ime:",
        "quobyte:", "pfs:",
    ];
    let system = SYSTEMS.iter().find(|system| name.starts_with(**system));
    system.map_or(0, |system| system.len())
}

/// Makes the object of a file that the real MPI has opened on `communicator`.
///
/// # Safety
/// Inside a stub; `communicator` must be alive, `word` a file of the lower half's.
pub unsafe fn opened(
    word: Word,
    communicator: *mut Object,
    given_mode: c_int,
    recipe: Option<Recipe>,
) -> *mut Object {
    // SAFETY: the communicator is alive, by the caller's promise, and held from here on; the file's object is new.
    unsafe {
        handle::retain(communicator);
        let body = Box::new(Body {
            communicator,
            _uncarried: recipe.is_none().then(|| Alive::new(Reason::File)),
            recipe,
            given_mode,
            shares: AtomicBool::new(false),
            notes: SpinLock::new(Notes::default()),
        });
        let object = handle::create(HandleKind::File, word, Box::into_raw(body).cast());
        (*object).clock = communicator::group_clock(communicator);
        object
    }
}

/// Ends a file that the application has closed.
///
/// # Safety
/// `object` must be a live file of the slab, closed in the lower half; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the body is the box of `opened`.
    unsafe {
        let body = (*object).body.cast::<Body>();
        (*object).body = std::ptr::null_mut();
        if body.is_null() {
            return;
        }
        let body = Box::from_raw(body);
        set_view(&body, None);
        handle::release(body.communicator);
    }
}

/// Gives the file a new view; the datatypes of the old one are let go of.
///
/// # Safety
/// Inside a stub; the datatypes must be alive.
pub unsafe fn set_view(body: &Body, view: Option<View>) {
    // SAFETY: the new datatypes are alive, by the caller's promise, and the file holds them from here on; it has held the old ones until now.
    unsafe {
        if let Some(new) = &view {
            handle::retain(new.elementary);
            handle::retain(new.filetype);
        }
        let old = std::mem::replace(&mut body.notes.lock().view, view);
        if let Some(old) = old {
            handle::release(old.elementary);
            handle::release(old.filetype);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_mpi_is_not_told_that_a_file_is_sequential() {
        let writes = 256;
        assert_eq!(mode::below(mode::SEQUENTIAL | writes), writes);
        assert_eq!(
            mode::below(mode::DELETE_ON_CLOSE | mode::READ_AND_WRITE),
            mode::READ_AND_WRITE
        );
        let error = mode::SEQUENTIAL | mode::READ_AND_WRITE;
        assert_eq!(mode::below(error), error);
    }

    #[test]
    fn names_begin_at_the_root_directory() {
        // SAFETY: the name is a C string that outlives the call.
        let name = |name: &CStr| unsafe { absolute(name.as_ptr()) };
        let here = std::env::current_dir().unwrap();
        let expected = CString::new(format!("{}/a/b", here.display())).unwrap();
        assert_eq!(name(c"a/b"), Some(expected));
        assert_eq!(name(c"/x").as_deref(), Some(c"/x"));
        if cfg!(not(application = "openmpi")) {
            let expected = CString::new(format!("ufs:{}/a", here.display())).unwrap();
            assert_eq!(name(c"ufs:a"), Some(expected));
            assert_eq!(name(c"nfs:/a").as_deref(), Some(c"nfs:/a"));
        }
        assert_eq!(name(c"/\xff"), None);
    }
}
