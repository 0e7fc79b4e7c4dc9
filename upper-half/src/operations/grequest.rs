//! Generalized requests: the lower half has real ones, and calls back to run the application's functions.
//!
//! Open MPI's Fortran layer starts one through `PMPI_Grequest_start` and then notes, in a byte of the
//! object, that the functions are Fortran's.

use core::ffi::{c_int, c_void};
use core::ptr;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::Callback;
use stillpoint_wrappers::neutral::{Status, Word};

use crate::ground::abi::{
    self, GrequestCancelFunction, GrequestFreeFunction, GrequestQueryFunction, PlaceOf,
    RequestHandle,
};
use crate::ground::crossing::{self, cross};
use crate::ground::fortran;
use crate::ground::object::Object;
use crate::objects::errhandler::raise;
use crate::operations::request::{
    self, Arguments, Kind, NO_MESSAGE, ORPHAN, Recipe, Request, State,
};

/// The functions that the application has given.
struct Functions {
    query: GrequestQueryFunction,
    free: GrequestFreeFunction,
    cancel: GrequestCancelFunction,
    extra_state: *mut c_void,
    /// The object, whose byte names the language of the functions.
    request: *mut Object,
    /// `MPI_Grequest_complete` was called.
    complete: bool,
}

/// The Fortran form of each function.
type FortranQuery = unsafe extern "C" fn(*mut c_void, *mut abi::Status, *mut c_int);
type FortranFree = unsafe extern "C" fn(*mut c_void, *mut c_int);
type FortranCancel = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut c_int);

/// `MPI_Grequest_start`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn grequest_start(
    query_fn: GrequestQueryFunction,
    free_fn: GrequestFreeFunction,
    cancel_fn: GrequestCancelFunction,
    extra_state: *mut c_void,
    request: PlaceOf<RequestHandle>,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: MPI demands functions of these types and a writable place; `functions` lives until the real MPI has called the one that frees.
    unsafe {
        let functions = Box::into_raw(Box::new(Functions {
            query: query_fn,
            free: free_fn,
            cancel: cancel_fn,
            extra_state,
            request: ptr::null_mut(),
            complete: false,
        }));
        let recipe = Recipe::new(move |dispatch, word| {
            let code = begin(functions, dispatch, word);
            if code == 0 && (*functions).complete {
                return (dispatch.grequest_complete)(*word);
            }
            code
        });
        let mut word = 0;
        let code = cross(|dispatch| recipe.run(dispatch, &mut word));
        if code != 0 {
            drop(recipe);
            drop(Box::from_raw(functions));
            return raise(ptr::null_mut(), code, c"MPI_Grequest_start");
        }
        let arguments = Arguments::without_message(Kind::Generalized, ptr::null_mut());
        let made = request::create(&arguments, NO_MESSAGE);
        (*made).head.lower = word;
        (*made).recipe = Some(recipe);
        (*made).context = functions.cast();
        (*functions).request = made.cast();
        fortran::mirror(made.cast());
        request.set(made.cast());
        0
    }
}

/// Starts a request in the lower half that calls these functions.
///
/// # Safety
/// In the lower half; the functions must live until the one that frees has run.
unsafe fn begin(functions: *mut Functions, dispatch: &Dispatch, word: *mut Word) -> i32 {
    let [query, free, cancel] = [
        Callback::GrequestQuery,
        Callback::GrequestFree,
        Callback::GrequestCancel,
    ]
    .map(|kind| {
        let make = crossing::gate().services.make_callback;
        // SAFETY: the service takes any context, and the caller is in the lower half.
        make.map_or(0, |make| unsafe { make(kind as u32, functions as u64) }) as *const c_void
    });
    // SAFETY: the caller is in the lower half; `functions` lives until the function that frees has run, and `word` is the caller's place.
    unsafe { (dispatch.grequest_start)(query, free, cancel, functions.cast(), word) }
}

/// A request of the lower half's that belongs to no application, and is not over as long as this lives.
pub struct PendingGrequest(Word);

impl PendingGrequest {
    /// Returns `None` if the real MPI makes none.
    ///
    /// # Safety
    /// Inside a stub or parked.
    pub unsafe fn new() -> Option<PendingGrequest> {
        let functions = Box::into_raw(Box::new(Functions {
            query: None,
            free: None,
            cancel: None,
            extra_state: ptr::null_mut(),
            request: ptr::null_mut(),
            complete: false,
        }));
        let mut word = 0;
        // SAFETY: the caller is inside a stub or parked; the functions are ours, and dropped here only if the real MPI has not taken them.
        unsafe {
            let code = cross(|dispatch| begin(functions, dispatch, &mut word));
            if code != 0 {
                drop(Box::from_raw(functions));
                return None;
            }
        }
        Some(PendingGrequest(word))
    }

    pub fn word(&self) -> Word {
        self.0
    }
}

impl Drop for PendingGrequest {
    fn drop(&mut self) {
        let (mut over, mut status) = (0, Status::default());
        // SAFETY: it is dropped where `new` may be called; the request is this value's own.
        unsafe {
            cross(|dispatch| {
                if (dispatch.grequest_complete)(self.0) == 0 {
                    (dispatch.test)(&mut self.0, &mut over, &mut status);
                }
            });
        }
    }
}

/// Whether `MPI_Grequest_complete` has yet to be called for a request. Until then the request has to exist, even if the application has freed it (MPI 5.0,
/// section 13.2).
///
/// # Safety
/// `request` must be alive.
pub unsafe fn is_open(request: *const Request) -> bool {
    // SAFETY: the request is alive, by the caller's promise; the functions live as long as a generalized one is active.
    unsafe {
        (*request).kind == Kind::Generalized
            && (*request).state == State::Active
            && !(*(*request).context.cast::<Functions>()).complete
    }
}

/// `MPI_Grequest_complete`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn grequest_complete(request: *mut Object) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `request::of` looks at the handle; the functions live until the real MPI frees the request, which comes after their last use here.
    unsafe {
        let it = match request::of(request) {
            Ok(Some(it)) if (*it).kind == Kind::Generalized => it,
            _ => {
                return raise(
                    ptr::null_mut(),
                    request::ERR_REQUEST,
                    c"MPI_Grequest_complete",
                );
            }
        };
        let word = &raw mut (*it).head.lower;
        (*(*it).context.cast::<Functions>()).complete = true;
        let mut code = cross(|dispatch| (dispatch.grequest_complete)(*word));
        if code == 0 && (*it).flags & ORPHAN != 0 {
            // The application has freed it before: now it ends, and its function for that is called.
            code = cross(|dispatch| (dispatch.request_free)(word));
            request::end(it);
        }
        if code == 0 {
            0
        } else {
            raise(ptr::null_mut(), code, c"MPI_Grequest_complete")
        }
    }
}

/// `UpperHooks::call_grequest`: runs one of the application's functions.
///
/// # Safety
/// Called by the lower half with the upper FS; `context` and `argument` as `gate::Callback` says.
pub unsafe extern "C" fn call(kind: u32, context: u64, argument: u64) -> i32 {
    let functions = context as *mut Functions;
    // SAFETY: `context` is what `grequest_start` gave; it lives until the free function has run.
    unsafe {
        let it = &*functions;
        let in_c = it.request.is_null() || fortran::is_in_c(it.request.cast());
        let mut error = 0;
        if kind == Callback::GrequestQuery as u32 {
            let neutral = argument as *mut Status;
            let mut status = abi::Status::from_neutral(&*neutral);
            if let Some(query) = it.query {
                if in_c {
                    error = query(it.extra_state, &mut status);
                } else {
                    let query: FortranQuery = core::mem::transmute(query);
                    query(it.extra_state, &mut status, &mut error);
                }
            }
            *neutral = status.to_neutral();
        } else if kind == Callback::GrequestCancel as u32 {
            if let Some(cancel) = it.cancel {
                let mut complete = argument as c_int;
                if in_c {
                    error = cancel(it.extra_state, complete);
                } else {
                    let cancel: FortranCancel = core::mem::transmute(cancel);
                    cancel(it.extra_state, &mut complete, &mut error);
                }
            }
        } else {
            if let Some(free) = it.free {
                if in_c {
                    error = free(it.extra_state);
                } else {
                    let free: FortranFree = core::mem::transmute(free);
                    free(it.extra_state, &mut error);
                }
            }
            drop(Box::from_raw(functions));
        }
        abi::error_to_neutral(error)
    }
}
