//! Files: their stubs keep the data with which a restart opens them again.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::abi::predefined::null_word;
use crate::ground::abi::{
    self, DatarepConversionFunction, DatarepExtentFunction, DatatypeHandle, FileHandle, Offset,
    PlaceOf,
};
use crate::ground::crossing::{self, StayKind, cross};
use crate::ground::object::{Comm, Datatype, File, Info};
use crate::objects::file::{self, Recipe, View};
use crate::objects::info::pairs::Pairs;
use crate::objects::outcome::{MpiResult, check, class};
use crate::objects::{communicator, datatype, errhandler, info};
use crate::operations::clock::kept::Input;
use crate::stubs::{steps, uncarried};

mod sequence;
mod under_way;

pub use sequence::{shares, unsequenced};
pub use under_way::{begun, split_begun, split_end};

/// Room for the name of a representation (`MPI_MAX_DATAREP_STRING`).
const REPRESENTATION_ROOM: usize = 256;
/// Neutral `MPI_DISPLACEMENT_CURRENT`.
const CURRENT: i64 = -1;

/// The hints of a call, which the lower half has accepted.
///
/// # Safety
/// Inside a stub; `info` must be null or a handle.
unsafe fn hints_of(info: Info) -> Pairs {
    // SAFETY: `info` is null or a handle, by the caller's promise, which `pairs_of` looks at.
    unsafe { info::pairs_of(info) }.unwrap_or_default()
}

/// `MPI_File_open`. The clock of the set of the communicator's members counts collective operations on the file, because the
/// communicator may be freed before it.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_open(
    comm: Comm,
    filename: *const c_char,
    amode: c_int,
    info: Info,
    place: PlaceOf<FileHandle>,
) -> c_int {
    const NAME: &CStr = c"MPI_File_open";
    let _inside = crossing::enter_as(StayKind::Collective);
    // SAFETY: inside a stub; handles as MPI asks for them, and looked at by the real MPI before they are used here.
    unsafe {
        if let Err(code) = steps::info_below(info) {
            return errhandler::raise(steps::null_file(), code, NAME);
        }
        let (mut word, mode) = (0, abi::mode_to_neutral(amode));
        let recipe = recipe(comm, filename, mode, info);
        let how = match &recipe {
            Some(_) => file::mode::below(mode),
            None => mode,
        };
        let code = steps::clocked(comm, NAME, Input::Changed, |lower| {
            (lower.file_open)(
                abi::word(HandleKind::Communicator, comm),
                filename,
                how,
                abi::word(HandleKind::Info, info),
                steps::place(place, &mut word),
            )
        });
        if code != 0 {
            return errhandler::raise(steps::null_file(), code, NAME);
        }
        let file = file::opened(word, comm, amode, recipe);
        errhandler::inherit(file, steps::null_file());
        steps::give(place, file);
        0
    }
}

/// The recipe to open a file again, or `None` if the file cannot be carried: its communicator has processes of other worlds, or its name
/// is not known.
///
/// # Safety
/// Inside a stub; handles and the name are as the application gave them.
unsafe fn recipe(comm: Comm, filename: *const c_char, mode: i32, info: Info) -> Option<Recipe> {
    // SAFETY: the handle is looked at before it is used, the name is MPI's.
    unsafe {
        let (_, body) = communicator::usable(comm).ok()?;
        body.members.as_ref()?;
        if filename.is_null() {
            return None;
        }
        Some(Recipe {
            path: file::absolute(filename)?,
            mode,
            hints: hints_of(info),
        })
    }
}

/// `MPI_File_close`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_close(place: PlaceOf<FileHandle>) -> c_int {
    const NAME: &CStr = c"MPI_File_close";
    let _inside = crossing::enter_as(StayKind::Collective);
    // SAFETY: inside a stub; the handle is looked at before it is used.
    unsafe {
        let Some(file) = uncarried::live(place, HandleKind::File) else {
            return errhandler::raise(steps::null_file(), class::FILE, NAME);
        };
        let body = file::body(file);
        let deleted = body.and_then(|body| {
            let recipe = body.recipe.as_ref()?;
            let deletes = recipe.mode & file::mode::DELETE_ON_CLOSE != 0;
            deletes.then_some((body.communicator, recipe.path.as_ptr()))
        });
        let code = steps::clocked(file, NAME, Input::Changed, |lower| {
            let mut word = (*file).lower;
            let code = (lower.file_close)(&mut word);
            let Some((members, path)) = deleted.filter(|_| code == 0) else {
                return code;
            };
            // One member deletes the file, when all have closed it. No member goes on before that, because it might create another file of that name.
            if (*members).rank == 0 {
                (lower.file_delete)(path, null_word(HandleKind::Info));
            }
            (lower.barrier)((*members).lower)
        });
        if code != 0 {
            return errhandler::raise(file, code, NAME);
        }
        uncarried::end(place, HandleKind::File);
        0
    }
}

/// `MPI_File_get_amode`: a restart opens the file in a different mode.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_get_amode(file: File, place: *mut c_int) -> c_int {
    const NAME: &CStr = c"MPI_File_get_amode";
    let _inside = crossing::enter();
    // SAFETY: inside a stub; what is no open file is left to the real MPI.
    unsafe {
        let mut mode = 0;
        let known = steps::has_clock(file).then(|| file::body(file)).flatten();
        if let Some(body) = known.filter(|_| !place.is_null()) {
            *place = body.given_mode;
            return 0;
        }
        let code = cross(|lower| {
            (lower.file_get_amode)(
                abi::word(HandleKind::File, file),
                steps::place(place, &mut mode),
            )
        });
        if code != 0 {
            return errhandler::raise(file, code, NAME);
        }
        steps::give(place, abi::mode_from_neutral(mode));
        0
    }
}

/// `MPI_File_set_view`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_set_view(
    file: File,
    displacement: Offset,
    elementary: Datatype,
    filetype: Datatype,
    representation: *const c_char,
    info: Info,
) -> c_int {
    const NAME: &CStr = c"MPI_File_set_view";
    let _inside = crossing::enter_as(StayKind::Collective);
    // SAFETY: `info_below` looks at the info; the real MPI checks the words of the other handles before the view is noted here.
    unsafe {
        if let Err(code) = steps::info_below(info) {
            return errhandler::raise(file, code, NAME);
        }
        let mut from = abi::displacement_to_neutral(displacement);
        let sequential = sequence::of(file);
        if let Err(code) = sequence::begins(sequential, from) {
            return errhandler::raise(file, code, NAME);
        }
        let code = steps::clocked(file, NAME, Input::Changed, |lower| {
            if let Some(body) = sequential.filter(|_| from == CURRENT) {
                match sequence::here(lower, file, body) {
                    Ok(here) => from = here,
                    Err(code) => return code,
                }
            }
            (lower.file_set_view)(
                abi::word(HandleKind::File, file),
                from,
                abi::word(HandleKind::Datatype, elementary),
                abi::word(HandleKind::Datatype, filetype),
                representation,
                abi::word(HandleKind::Info, info),
            )
        });
        if code != 0 {
            return errhandler::raise(file, code, NAME);
        }
        let from = match from {
            CURRENT => displacement_of(file),
            from => Ok(from),
        };
        match (file::body(file), from) {
            (Some(body), Ok(displacement)) => {
                let view = View {
                    displacement,
                    elementary,
                    filetype,
                    representation: CStr::from_ptr(representation).into(),
                    hints: hints_of(info),
                };
                file::set_view(body, Some(view));
                0
            }
            (None, _) => 0,
            (_, Err(code)) => errhandler::raise(file, code, NAME),
        }
    }
}

/// The real MPI's answers about the view of a file: its beginning, and words of its datatypes.
///
/// # Safety
/// Inside a stub; `representation` must have room for a name. Words that are not predefined are the caller's.
unsafe fn view_of(file: File, representation: *mut c_char) -> MpiResult<(i64, [Word; 2])> {
    let (mut displacement, mut types) = (0, [0; 2]);
    let [elementary, filetype] = &mut types;
    // SAFETY: inside; what is no open file is left to the real MPI.
    unsafe {
        let file = abi::word(HandleKind::File, file);
        check(cross(|lower| {
            (lower.file_get_view)(
                file,
                &mut displacement,
                elementary,
                filetype,
                representation,
            )
        }))?;
    }
    Ok((displacement, types))
}

/// Frees datatypes of the lower half's that are not predefined.
///
/// # Safety
/// Inside a stub; the words must be datatypes of the lower half's, the caller's own.
unsafe fn free_types(types: [Word; 2]) {
    for mut word in types {
        if abi::predefined_from_word(HandleKind::Datatype, word).is_null() {
            // SAFETY: the word is the caller's own, and not a predefined datatype's, so it is freed once.
            unsafe { cross(|lower| (lower.type_free)(&mut word)) };
        }
    }
}

/// The beginning of a file's view.
///
/// # Safety
/// Inside a stub; `file` must be open.
unsafe fn displacement_of(file: File) -> MpiResult<i64> {
    let mut name = [0 as c_char; REPRESENTATION_ROOM];
    // SAFETY: the file is open, by the caller's promise; the name has room for the longest representation.
    unsafe {
        let (displacement, types) = view_of(file, name.as_mut_ptr())?;
        free_types(types);
        Ok(displacement)
    }
}

/// `MPI_File_get_view`: the datatypes are copies of those that the application gave.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_get_view(
    file: File,
    displacement: *mut Offset,
    elementary: PlaceOf<DatatypeHandle>,
    filetype: PlaceOf<DatatypeHandle>,
    representation: *mut c_char,
) -> c_int {
    const NAME: &CStr = c"MPI_File_get_view";
    let _inside = crossing::enter();
    // SAFETY: `view_of` has the real MPI check the file; MPI demands writable places, of which null ones are left out.
    let given = unsafe {
        view_of(file, representation).and_then(|(from, types)| {
            let given = file::body(file).and_then(|body| {
                let notes = body.notes.lock();
                let view = notes.view.as_ref()?;
                Some([view.elementary, view.filetype])
            });
            steps::give(displacement, from);
            for (number, place) in [elementary, filetype].into_iter().enumerate() {
                match given {
                    Some(given) if (*given[number]).predefined() => {
                        steps::give(place, given[number]);
                    }
                    Some(given) => steps::give(place, datatype::copy_of(given[number])?),
                    None => steps::adopt(HandleKind::Datatype, place, types[number])?,
                }
            }
            if given.is_some() {
                free_types(types);
            }
            Ok(())
        })
    };
    match given {
        Ok(()) => 0,
        // SAFETY: the stub is still inside; `file` is null or a handle, and `raise` demands no more of a handle that MPI gave.
        Err(code) => unsafe { errhandler::raise(file, code, NAME) },
    }
}

/// `MPI_File_set_info`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn file_set_info(file: File, info: Info) -> c_int {
    const NAME: &CStr = c"MPI_File_set_info";
    let _inside = crossing::enter_as(StayKind::Collective);
    // SAFETY: `info_below` looks at the info, and the real MPI checks the file before its hints are noted.
    unsafe {
        if let Err(code) = steps::info_below(info) {
            return errhandler::raise(file, code, NAME);
        }
        let code = steps::clocked(file, NAME, Input::Changed, |lower| {
            (lower.file_set_info)(
                abi::word(HandleKind::File, file),
                abi::word(HandleKind::Info, info),
            )
        });
        if code != 0 {
            return errhandler::raise(file, code, NAME);
        }
        if let Some(body) = file::body(file) {
            let mut notes = body.notes.lock();
            for (key, value) in hints_of(info).iter() {
                notes.hints.set(key, value);
            }
        }
        0
    }
}

/// `MPI_Register_datarep`. Open MPI notes the functions and calls none: its files accept only the predefined
/// representations. So the application's own addresses may go down.
///
/// # Safety
/// As the MPI function.
pub unsafe fn register_datarep(
    datarep: *const c_char,
    read: DatarepConversionFunction,
    write: DatarepConversionFunction,
    extent: DatarepExtentFunction,
    extra_state: *mut c_void,
) -> c_int {
    let _inside = crossing::enter();
    let address = |function: Option<usize>| ptr::without_provenance(function.unwrap_or(0));
    let read = address(read.map(|function| function as usize));
    let write = address(write.map(|function| function as usize));
    let extent = address(extent.map(|function| function as usize));
    // SAFETY: inside a stub; the functions are not called below.
    unsafe {
        let code =
            cross(|lower| (lower.register_datarep)(datarep, read, write, extent, extra_state));
        if code == 0 {
            return 0;
        }
        errhandler::raise(steps::null_file(), code, c"MPI_Register_datarep")
    }
}
