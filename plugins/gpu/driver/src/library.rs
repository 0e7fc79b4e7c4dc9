//! The driver's library, and the lookup of its functions.

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr;

use libloading::Library;

/// The only name that always means the driver's library. Without the number it may be a toolkit's, in which every call fails.
const NAME: &str = "libcuda.so.1";

/// The result of a driver's call. It is not cudarc's enumeration, since a newer driver has results that the enumeration
/// lacks.
pub(crate) type Code = u32;

pub(crate) const SUCCESS: Code = 0;

/// The reason why there is no driver to call.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no CUDA driver: {}", .0.source().map_or_else(|| .0.to_string(), ToString::to_string))]
    NoLibrary(libloading::Error),
    #[error("{NAME} has no cuGetProcAddress: its driver is older than CUDA 11.3")]
    TooOld,
    #[error(transparent)]
    Call(#[from] Error),
}

/// A call that the driver has refused, or lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{call} returns {name} ({code})")]
    Returned {
        call: &'static str,
        code: u32,
        name: String,
    },
    #[error("the installed CUDA driver has no {0}")]
    Missing(&'static str),
}

impl Error {
    /// Returns the driver's result, or `None` if the call could not be made.
    pub fn code(&self) -> Option<u32> {
        match self {
            Error::Returned { code, .. } => Some(*code),
            Error::Missing(_) => None,
        }
    }
}

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_uint) -> Code;
type GetProcAddressOld = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> Code;

/// The library's lookup function.
#[derive(Clone, Copy)]
enum Lookup {
    New(GetProcAddress),
    Old(GetProcAddressOld),
}

/// The initialized driver. It stays until the process ends.
pub struct Driver {
    lookup: Lookup,
}

/// A function's name, and the version of CUDA that introduced the wanted form of it.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub name: &'static CStr,
    pub since: c_int,
}

impl Function {
    fn text(self) -> &'static str {
        self.name.to_str().unwrap_or("?")
    }
}

impl Driver {
    /// Opens the library and initializes it. This may take seconds.
    ///
    /// # Errors
    /// There is no driver, or it cannot be initialized, for example because there is no device.
    pub fn open() -> Result<Driver, OpenError> {
        // SAFETY: loading the library runs its constructors, which are those of the installed driver.
        let library = unsafe { Library::new(NAME) }.map_err(OpenError::NoLibrary)?;
        // The library has threads of its own and must never be closed.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: NVIDIA's header gives these names these types, and the library stays loaded.
        let lookup = unsafe {
            let new = library.get::<GetProcAddress>(c"cuGetProcAddress_v2");
            let old = || library.get::<GetProcAddressOld>(c"cuGetProcAddress");
            match new {
                Ok(new) => Lookup::New(*new),
                Err(_) => Lookup::Old(*old().map_err(|_| OpenError::TooOld)?),
            }
        };
        let driver = Driver { lookup };
        let init = Function {
            name: c"cuInit",
            since: 2000,
        };
        type Init = unsafe extern "C" fn(c_uint) -> Code;
        // SAFETY: cuInit has the type `Init`; no flags are defined.
        driver.call::<Init>(init, |init| unsafe { init(0) })?;
        Ok(driver)
    }

    fn find(&self, function: Function) -> Option<*mut c_void> {
        let Function { name, since } = function;
        let mut found = ptr::null_mut();
        let mut status = 0;
        // SAFETY: the name ends in NUL, and both places are written by the call alone.
        let code = unsafe {
            match self.lookup {
                Lookup::New(get) => get(name.as_ptr(), &raw mut found, since, 0, &raw mut status),
                Lookup::Old(get) => get(name.as_ptr(), &raw mut found, since, 0),
            }
        };
        (code == SUCCESS && !found.is_null()).then_some(found)
    }

    /// Tells whether the driver has a function.
    pub(crate) fn has(&self, function: Function) -> bool {
        self.find(function).is_some()
    }

    /// Finds a function, whose type is `F`, and calls it.
    pub(crate) fn call<F: Copy>(
        &self,
        function: Function,
        make: impl FnOnce(F) -> Code,
    ) -> Result<(), Error> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let found = self.find(function).ok_or(Error::Missing(function.text()))?;
        // SAFETY: a function is as wide as a pointer, as was compared; every caller says beside its call that the function has the type `F`.
        let known = unsafe { mem::transmute_copy::<*mut c_void, F>(&found) };
        match make(known) {
            SUCCESS => Ok(()),
            code => Err(Error::Returned {
                call: function.text(),
                code,
                name: self.name_of(code),
            }),
        }
    }

    /// Calls a function as [`Driver::call`] does, and returns the value that it writes.
    pub(crate) fn ask<F: Copy, T>(
        &self,
        function: Function,
        empty: T,
        make: impl FnOnce(F, *mut T) -> Code,
    ) -> Result<T, Error> {
        let mut place = MaybeUninit::new(empty);
        self.call::<F>(function, |known| make(known, place.as_mut_ptr()))?;
        // SAFETY: the place had a value from the beginning, and the call has at most replaced it.
        Ok(unsafe { place.assume_init() })
    }

    fn name_of(&self, code: Code) -> String {
        type GetErrorName = unsafe extern "C" fn(Code, *mut *const c_char) -> Code;
        let function = Function {
            name: c"cuGetErrorName",
            since: 6000,
        };
        let Some(found) = self.find(function) else {
            return "an error".to_owned();
        };
        let mut name = ptr::null();
        // SAFETY: cuGetErrorName has the type `GetErrorName`; it writes one pointer to `name`, which leads to a text of the library's own that stays.
        unsafe {
            let known = mem::transmute::<*mut c_void, GetErrorName>(found);
            match known(code, &raw mut name) {
                SUCCESS if !name.is_null() => CStr::from_ptr(name).to_string_lossy().into_owned(),
                _ => "an error".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_call() {
        let error = Error::Returned {
            call: "cuInit",
            code: 100,
            name: "CUDA_ERROR_NO_DEVICE".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "cuInit returns CUDA_ERROR_NO_DEVICE (100)"
        );
        assert_eq!(error.code(), Some(100));
        let missing = Error::Missing("cuCheckpointProcessLock");
        assert!(missing.to_string().contains("cuCheckpointProcessLock"));
    }
}
