//! The library, and the addresses of its functions.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use stillpoint_wrappers::lengths::Lengths;

use super::{ffi, texts};
use crate::ground::say;
use crate::mpi::library::{NAMES, abi};
use crate::threads::at_exit;

struct Functions([*const c_void; ffi::NAMES.len()]);

// SAFETY: the pointers lead to code of a library that is never unloaded, and nothing writes through them.
unsafe impl Send for Functions {}
// SAFETY: the pointers lead to code of a library that is never unloaded, and nothing writes through them.
unsafe impl Sync for Functions {}

static FOUND: OnceLock<Functions> = OnceLock::new();
/// The library's handle for the dynamic linker.
static LIBRARY: OnceLock<usize> = OnceLock::new();

/// Loads the library, and finds its functions for programs of an ABI. A missing function is reported when it is called.
///
/// # Errors
/// The library cannot be loaded, or is not an MPI library.
pub fn load(path: Option<&Path>, program: &str) -> Result<(), String> {
    let lengths = Lengths::of(program);
    texts::for_programs_with(lengths.ok_or_else(|| format!("no ABI {program} is known here"))?);
    let names: &[&Path] = match &path {
        Some(path) => &[path],
        None => &NAMES.map(Path::new),
    };
    let mut error = String::new();
    let opened = names.iter().find_map(|name| match open(name) {
        Ok(library) => Some((name, library)),
        Err(text) => {
            error = text;
            None
        }
    });
    let Some((path, library)) = opened else {
        return Err(format!("no MPI can be loaded: {error}"));
    };
    let mut functions = ffi::NAMES.map(|name| look_up(library, name));
    if functions.iter().all(|function| function.is_null()) {
        return Err(format!("{}: this is no MPI", path.display()));
    }
    let end = ffi::NAMES.iter().position(|name| *name == c"MPI_Finalize");
    if let Some(end) = end.filter(|end| !functions[*end].is_null()) {
        let _ = FINALIZE.set(functions[end].expose_provenance());
        functions[end] = finalize as *const c_void;
    }
    let _ = FOUND.set(Functions(functions));
    let _ = LIBRARY.set(library.expose_provenance());
    Ok(())
}

/// The library's own `MPI_Finalize`.
static FINALIZE: OnceLock<usize> = OnceLock::new();

/// Calls `MPI_Finalize`, and then the functions that the library has registered for the process's end, which would not be reached: MPICH 5 leaves its launcher
/// in them. A launcher whose ranks end without that kills the remaining ones.
unsafe extern "C" fn finalize() -> c_int {
    let own = FINALIZE.get().copied().unwrap_or(0);
    let own = core::ptr::with_exposed_provenance::<c_void>(own);
    // SAFETY: this function is in the table only once the library's own was found, which has this type; MPI is not called after it.
    unsafe {
        let code = core::mem::transmute::<*const c_void, unsafe extern "C" fn() -> c_int>(own)();
        if code == 0 {
            at_exit::over(own);
        }
        code
    }
}

fn open(path: &Path) -> Result<*mut c_void, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the name ends in NUL. Code of the library's own may run when it is loaded; the user has chosen the library.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    match library.is_null() {
        true => Err(last_error()),
        false => Ok(library),
    }
}

/// Looks up a function by its name, or by the name that MPI-4 gave to a former extension.
fn look_up(library: *mut c_void, name: &CStr) -> *const c_void {
    // SAFETY: the name ends in NUL, and the library stays loaded.
    let find = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) }.cast_const();
    let found = find(name);
    let extension = name.to_bytes().strip_prefix(b"MPIX_");
    match extension.map(|rest| CString::new([b"MPI_", rest].concat())) {
        Some(Ok(standard)) if found.is_null() => find(&standard),
        _ => found,
    }
}

fn last_error() -> String {
    // SAFETY: dlerror returns null, or a text that ends in NUL and stays until this thread's next call of the linker.
    unsafe {
        let text = libc::dlerror();
        match text.is_null() {
            true => "the linker does not say why".to_owned(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}

/// Returns the function of that number, if the library has it.
#[inline(always)]
pub fn found(index: usize) -> Option<*const c_void> {
    let function = FOUND.get()?.0[index];
    (!function.is_null()).then_some(function)
}

/// Returns the library's own function of that name, if it has one, for a program with the library's ABI.
pub fn own(name: &CStr) -> Option<*const ()> {
    let library = core::ptr::with_exposed_provenance_mut(*LIBRARY.get()?);
    let function = look_up(library, name);
    (!function.is_null()).then_some(function.cast())
}

/// Returns the library's symbol of a name that is not in the table: data, or another function.
pub fn named(name: &CStr) -> Option<*const c_void> {
    let library = core::ptr::with_exposed_provenance_mut(*LIBRARY.get()?);
    // SAFETY: the name ends in NUL, and the library stays loaded.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found.cast_const())
}

/// Reports that the library lacks the function of that number. Returns the error code for that.
#[cold]
pub fn absent(index: usize) -> i32 {
    let name = ffi::NAMES[index].to_string_lossy();
    say::line(format_args!("the MPI library has no {name}"));
    abi::ERR_UNSUPPORTED_OPERATION
}
