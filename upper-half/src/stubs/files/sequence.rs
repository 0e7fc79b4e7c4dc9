//! Files in `MPI_MODE_SEQUENTIAL`, which the real MPI opens like any other, and shared pointers.

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::HandleKind;

use super::CURRENT;
use crate::ground::abi;
use crate::ground::object::File;
use crate::objects::file::{self, Body};
use crate::objects::outcome::{MpiResult, check, class};
use crate::stubs::steps;

/// Whether calls that the mode forbids are errors: MPICH says so, Open MPI allows them.
const IS_STRICT: bool = cfg!(not(application = "openmpi"));

/// The body of an open file.
///
/// # Safety
/// Inside a stub; `file` is looked at before it is used.
unsafe fn open<'a>(file: File) -> Option<&'a Body> {
    // SAFETY: a live file, where it has a clock.
    unsafe { steps::has_clock(file).then(|| file::body(file)).flatten() }
}

/// Notes that the shared pointer of a file is about to be used.
///
/// # Safety
/// As [`open`].
pub unsafe fn shares(file: File) {
    // SAFETY: the caller is inside a stub, and `open` looks at the file's handle before it uses it.
    if let Some(body) = unsafe { open(file) } {
        body.shares();
    }
}

/// To be called before an operation that a sequential file cannot do: an error if the file is sequential.
///
/// # Safety
/// As [`open`].
pub unsafe fn unsequenced(file: File) -> MpiResult {
    // SAFETY: the caller is inside a stub; `of` looks at the file, and only whether it is sequential is asked.
    match IS_STRICT && unsafe { of(file) }.is_some() {
        true => Err(class::UNSUPPORTED_OPERATION),
        false => Ok(()),
    }
}

/// The body of a sequential file.
///
/// # Safety
/// As [`open`].
pub unsafe fn of<'a>(file: File) -> Option<&'a Body> {
    // SAFETY: the caller is inside a stub, and `open` looks at the file; the body lives as long as the file.
    unsafe { open(file) }.filter(|body| body.is_sequential())
}

/// Whether a view may begin there: in a sequential file, only at its current position.
pub fn begins(sequential: Option<&Body>, from: i64) -> MpiResult {
    match sequential {
        Some(_) if IS_STRICT && from != CURRENT => Err(class::ARG),
        _ => Ok(()),
    }
}

/// The position of a sequential file, in bytes. No member goes on before all know it: a new view begins with the pointer at 0.
///
/// # Safety
/// Inside a stub; the file is the body's; collective over its members.
pub unsafe fn here(lower: &Dispatch, file: File, body: &Body) -> MpiResult<i64> {
    let (mut elements, mut bytes) = (0, 0);
    body.shares();
    // SAFETY: the file is the body's, by the caller's promise, and holds its communicator; both numbers are local variables.
    unsafe {
        let word = abi::word(HandleKind::File, file);
        let found = check((lower.file_get_position_shared)(word, &mut elements))
            .and_then(|()| check((lower.file_get_byte_offset)(word, elements, &mut bytes)));
        check((lower.barrier)((*body.communicator).lower))?;
        found.map(|()| bytes)
    }
}
