//! Names of communicators.

use std::ffi::{CString, c_char, c_int};

use super::{Notes, alone, usable, world};
use crate::ground::crossing;
use crate::ground::object::Comm;
use crate::objects::datatype::{give_name, take_name};
use crate::objects::errhandler::run;
use crate::objects::outcome::{check, class};
use crate::operations::clock::collective;

/// The name of a communicator with these notes, if it has one.
pub fn name_of(comm: Comm, notes: &Notes) -> Option<Vec<u8>> {
    let given = match comm {
        _ if comm == world() => Some(b"MPI_COMM_WORLD".to_vec()),
        _ if comm == alone() => Some(b"MPI_COMM_SELF".to_vec()),
        _ => None,
    };
    notes.name.clone().or(given)
}

/// `MPI_Comm_get_name`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_get_name(comm: Comm, text: *mut c_char, length: *mut c_int) -> c_int {
    // SAFETY: `usable` looks at the communicator; MPI demands room for its longest name at `text`, and `give_name` refuses null places.
    unsafe {
        run(comm, c"MPI_Comm_get_name", || {
            let (comm, body) = usable(comm)?;
            let name = name_of(comm, &body.notes.lock());
            give_name(&name.unwrap_or_default(), text, length)
        })
    }
}

/// `MPI_Comm_set_name`: the lower half is told too, for its error messages.
///
/// # Safety
/// As the MPI function.
pub unsafe fn comm_set_name(comm: Comm, text: *const c_char) -> c_int {
    // SAFETY: `usable` looks at the communicator; MPI demands that `text` is a C string, and `below` outlives the call.
    unsafe {
        run(comm, c"MPI_Comm_set_name", || {
            let (comm, body) = usable(comm)?;
            let name = take_name(text)?;
            let below = CString::new(name.clone()).map_err(|_| class::ARG)?;
            let (word, text) = ((*comm).lower, below.as_ptr());
            check(crossing::cross(|d| (d.comm_set_name)(word, text)))?;
            collective::call_clock((*comm).clock, &name);
            body.notes.lock().name = Some(name);
            Ok(())
        })
    }
}
