//! User-defined operators.
//!
//! The lower half carries a reduction out, so it must call the operator. A function made for each operator (`Services::make_callback`)
//! leads back to [`call`], which runs the application's function under the application's own thread
//! pointer, with the application's own datatype handle.

mod calls;

use std::ffi::{c_int, c_void};

use stillpoint_wrappers::gate::{Callback, HandleKind};
use stillpoint_wrappers::neutral::Word;

pub use calls::*;

use crate::ground::abi::{DatatypeHandle, Handle};
use crate::ground::object::Object;
use crate::ground::{crossing, fortran, handle};
use crate::objects::datatype;
use crate::objects::outcome::{MpiResult, check, class};
use crate::objects::rehearsal_outcome::{Tried, differs, failed, without_recipe};

/// `MPI_User_function`, C's and, with a Fortran handle behind the last pointer, Fortran's.
type CFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut DatatypeHandle);
type FortranFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut i32);
/// `MPI_User_function_c`.
#[cfg(not(application = "openmpi"))]
type LargeFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut DatatypeHandle);

/// The data of an operator.
struct Body {
    function: usize,
    commutative: bool,
    /// The function that calls `function`, for the former C++ bindings.
    intercept: usize,
    /// The function finds the count in eight bytes.
    large: bool,
    /// The lower half's function that leads here, of this launch.
    callback: u64,
}

/// The body of an operator, which several threads may reduce with at once.
///
/// # Safety
/// `object` must be a live operator.
unsafe fn body<'a>(object: *mut Object) -> Option<&'a Body> {
    // SAFETY: the body is the box of `create`; it is changed only through `changed`, when no other thread uses it.
    unsafe { (*object).body.cast::<Body>().as_ref() }
}

/// The body of an operator, to be changed.
///
/// # Safety
/// `object` must be a live operator that no other code uses: while it is made, and at a restart.
unsafe fn changed<'a>(object: *mut Object) -> Option<&'a mut Body> {
    // SAFETY: the body is the box of `create`, and no other code uses it, by the caller's promise.
    unsafe { (*object).body.cast::<Body>().as_mut() }
}

/// Makes the lower half's operator for one of the application's.
///
/// # Safety
/// Inside MPI; `object` must be a live operator of the application's that no other code uses.
unsafe fn construct(object: *mut Object) -> MpiResult {
    // SAFETY: inside; the service takes any context and gives it back.
    unsafe {
        let body = changed(object).ok_or(class::INTERN)?;
        let make = crossing::gate()
            .services
            .make_callback
            .ok_or(class::INTERN)?;
        let (kind, context) = (Callback::Operator as u32, object as u64);
        let callback = crossing::cross(|_| make(kind, context));
        if callback == 0 {
            return Err(class::NO_MEM);
        }
        body.callback = callback;
        let (function, commutes) = (callback as *const c_void, c_int::from(body.commutative));
        let mut word: Word = 0;
        check(crossing::cross(|d| {
            (d.op_create)(function, commutes, &raw mut word)
        }))?;
        (*object).lower = word;
        Ok(())
    }
}

/// Makes an operator.
///
/// # Safety
/// Inside a stub; `function` must be the application's.
unsafe fn create(function: usize, commutative: bool) -> MpiResult<*mut Object> {
    let body = Box::new(Body {
        function,
        commutative,
        intercept: 0,
        large: false,
        callback: 0,
    });
    let object = handle::create(HandleKind::Operator, 0, Box::into_raw(body).cast());
    // SAFETY: the object was made just now.
    unsafe {
        if let Err(error) = construct(object) {
            drop(Box::from_raw((*object).body.cast::<Body>()));
            handle::recycle(object);
            return Err(error);
        }
    }
    Ok(object)
}

/// `UpperHooks::call_op`: the lower half wants two vectors reduced.
///
/// # Safety
/// As the hook: on a thread of the application that is inside MPI, with the upper thread pointer;
/// `context` is an operator of [`create`].
pub unsafe extern "C" fn call(
    context: u64,
    inputs: *mut u8,
    results: *mut u8,
    count: *mut i32,
    datatype: Word,
) {
    let operator = context as *mut Object;
    // SAFETY: the reducing call holds the operator; its function has the type that its binding asks for.
    unsafe {
        let Some(body) = body(operator) else {
            return;
        };
        let datatype = datatype::by_word(datatype);
        let mut handle = DatatypeHandle::of(datatype);
        let (inputs, results) = (inputs.cast(), results.cast());
        if fortran::takes_fortran(operator) {
            let function: FortranFunction = std::mem::transmute(body.function);
            let mut number = fortran::to_fortran(datatype);
            function(inputs, results, count, &raw mut number);
        } else if body.intercept != 0 {
            let (by, handle) = (body.intercept, &raw mut handle);
            fortran::call_cxx_operator(by, (inputs, results), count, handle, body.function);
        } else if body.large {
            call_large(body.function, (inputs, results), *count, &mut handle);
        } else {
            let function: CFunction = std::mem::transmute(body.function);
            function(inputs, results, count, &raw mut handle);
        }
    }
}

/// Calls a function that takes the count in eight bytes.
///
/// # Safety
/// `function` must be a reduction function that counts in eight bytes; the rest is as the hook gives it.
#[cfg(not(application = "openmpi"))]
unsafe fn call_large(
    function: usize,
    (inputs, results): (*mut c_void, *mut c_void),
    count: i32,
    datatype: &mut DatatypeHandle,
) {
    let mut count = i64::from(count);
    // SAFETY: `function` is such a function, by the caller's promise, and as large as a pointer; the vectors are the real MPI's for the time of the call.
    unsafe {
        let function: LargeFunction = std::mem::transmute(function);
        function(inputs, results, &raw mut count, datatype);
    }
}

/// Open MPI 4 has no such functions.
///
/// # Safety
/// None to keep.
#[cfg(application = "openmpi")]
unsafe fn call_large(
    _function: usize,
    _vectors: (*mut c_void, *mut c_void),
    _count: i32,
    _datatype: &mut DatatypeHandle,
) {
}

/// Notes that an operator's function takes the count in eight bytes.
///
/// # Safety
/// `object` must be a live operator of the application's that no other thread uses yet.
#[cfg(not(application = "openmpi"))]
pub unsafe fn count_in_eight_bytes(object: *mut Object) {
    // SAFETY: the operator is alive and no other thread uses it yet, by the caller's promise, so nothing else refers to its body.
    if let Some(body) = unsafe { changed(object) } {
        body.large = true;
    }
}

/// Makes `intercept` the function that calls an operator's function, which stays (the former C++ bindings).
///
/// # Safety
/// `object` must be a live operator of the application's that no other thread uses yet.
#[cfg(application = "mpich")]
pub unsafe fn set_caller(object: *mut Object, intercept: usize) {
    // SAFETY: the operator is alive and no other thread uses it yet, by the caller's promise, so its body may be changed.
    if let Some(body) = unsafe { changed(object) } {
        body.intercept = intercept;
    }
}

/// Makes `intercept` the function that calls an operator's function (the former C++ bindings).
///
/// # Safety
/// `object` must be a live operator of the application's that no other thread uses yet.
pub unsafe fn set_intercept(object: *mut Object, function: usize) {
    // SAFETY: the operator is alive and no other thread uses it yet, by the caller's promise, so both functions may be exchanged.
    if let Some(body) = unsafe { changed(object) } {
        body.intercept = std::mem::replace(&mut body.function, function);
    }
}

/// Ends an operator that has no holder any more, in the lower half too.
///
/// # Safety
/// `object` must be a live operator of the slab; inside a stub.
pub unsafe fn end(object: *mut Object) {
    // SAFETY: the body is the box of `create`; the lower half does not call a freed operator.
    unsafe {
        let mut word = std::mem::take(&mut (*object).lower);
        crossing::cross(|d| (d.op_free)(&raw mut word));
        let body = (*object).body.cast::<Body>();
        (*object).body = std::ptr::null_mut();
        if !body.is_null() {
            let body = Box::from_raw(body);
            if let Some(free) = crossing::gate().services.free_callback {
                crossing::cross(|_| free(body.callback));
            }
        }
    }
}

/// Makes all operators again in a fresh lower half.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rebuild() -> MpiResult {
    for object in handle::live(HandleKind::Operator) {
        // SAFETY: live operators of the application's.
        unsafe { construct(object)? };
    }
    Ok(())
}

/// Makes each operator once more, and frees it again.
///
/// # Safety
/// Inside MPI, on the one thread that runs.
pub unsafe fn rehearse() -> Tried {
    for object in handle::live(HandleKind::Operator) {
        // SAFETY: live operators of the application's; the new word is ours, and no call reduces with it.
        unsafe {
            let what = format!("operator {}", (*object).id);
            let body = body(object).ok_or_else(|| without_recipe(&what))?;
            let function = body.callback as *const c_void;
            let (mut word, mut commutes) = (0, c_int::from(body.commutative));
            let mut error = crossing::cross(|d| (d.op_create)(function, commutes, &raw mut word));
            if error == 0 {
                error = crossing::cross(|d| (d.op_commutative)(word, &raw mut commutes));
                crossing::cross(|d| (d.op_free)(&raw mut word));
            }
            check(error).map_err(|error| failed(&what, error))?;
            if (commutes != 0) != body.commutative {
                return Err(differs(&what));
            }
        }
    }
    Ok(())
}
