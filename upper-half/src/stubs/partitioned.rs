//! Partitioned communication (`MPI_Psend_init` and its like), if the real MPI has it and the application's ABI.
//!
//! Its requests are the real MPI's, which alone knows the partitions that are ready or have come. Two ranks match their requests in the order in which they
//! have made them, so that one rank alone cannot make any of them again. So as long as one exists, active or not, a checkpoint is refused by name; the program
//! runs on ([`describe`]). Elsewhere the functions are refused when they are called.
//!
//! A request is a persistent one of a kind of its own: it is started, asked for its end and freed like any other, but its messages are not counted.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use stillpoint_refusals::Code;
use stillpoint_wrappers::direct::Direct;
use stillpoint_wrappers::gate::HandleKind;
use stillpoint_wrappers::neutral::Word;

use crate::ground::abi::{self, Count, PlaceOf, RequestHandle};
use crate::ground::crossing::{self, cross, dispatch};
use crate::ground::hindrances::Text;
use crate::ground::object::{Comm, Datatype, Info, Object};
use crate::objects::errhandler::raise;
use crate::operations::request::{self, Arguments, Kind, NO_MESSAGE, PERSISTENT, Request, State};
use crate::operations::{devices, direct};
use crate::stubs::uncarried::{RefusalReason, refuse};

/// The real MPI's own functions, if it has the application's ABI.
fn table() -> Option<&'static Direct> {
    let table = &dispatch().direct;
    (table.abi == abi::ABI).then_some(table)
}

/// Refuses a function that has no counterpart.
///
/// # Safety
/// Inside a stub.
unsafe fn refused(name: &'static CStr) -> c_int {
    // SAFETY: the caller is inside a stub.
    unsafe { refuse(name, RefusalReason::Partitioned) as c_int }
}

/// Makes a request.
///
/// # Safety
/// Inside a stub; `comm` must lead to an object, `place` be writable; `call` must make a request of the real MPI's in the place that it is given.
unsafe fn init(
    comm: Comm,
    place: PlaceOf<RequestHandle>,
    name: &'static CStr,
    call: impl FnOnce(*mut Word) -> c_int,
) -> c_int {
    let mut word = 0;
    let code = call(&raw mut word);
    // SAFETY: the real MPI has made the request with `comm`, so that is alive; `place` is writable, by the caller's promise.
    unsafe {
        if code != 0 {
            return raise(comm, direct::error(code), name);
        }
        let arguments = Arguments::without_message(Kind::Partitioned, comm);
        let request = request::create(&arguments, PERSISTENT | NO_MESSAGE);
        (*request).head.lower = word;
        (*request).state = State::Inactive;
        place.set(request.cast());
    }
    0
}

macro_rules! inits {
    ($($(#[$doc:meta])* $function:ident $name:literal ($buffer:ty) $below:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the MPI function.
        #[allow(clippy::too_many_arguments)] // MPI's.
        pub unsafe fn $function(
            buf: $buffer, partitions: c_int, count: Count, datatype: Datatype, peer: c_int, tag: c_int, comm: Comm,
            info: Info, place: PlaceOf<RequestHandle>,
        ) -> c_int {
            let _inside = crossing::enter();
            // SAFETY: MPI demands live handles and a buffer that lasts as long as the request; the real MPI checks the words that it gets.
            unsafe {
                let function = table().and_then(|table| table.$below).filter(|_| !devices::present());
                let Some(function) = function else { return refused($name) };
                let of_datatype = abi::word(HandleKind::Datatype, datatype);
                let of_comm = abi::word(HandleKind::Communicator, comm);
                let of_info = abi::word(HandleKind::Info, info);
                init(comm, place, $name, |word| {
                    cross(|_| function(buf, partitions, count, of_datatype, peer, tag, of_comm, of_info, word))
                })
            }
        }
    )*};
}

inits! {
    /// `MPI_Psend_init`.
    psend_init c"MPI_Psend_init" (*const c_void) psend_init;
    /// `MPI_Precv_init`.
    precv_init c"MPI_Precv_init" (*mut c_void) precv_init;
}

/// The request that a handle leads to, if it is one of these.
///
/// # Safety
/// Inside a stub; the application's handle.
unsafe fn of(handle: *mut Object) -> Option<*mut Request> {
    // SAFETY: `request::of` looks at the handle, so a request that it finds is alive.
    unsafe {
        let found = request::of(handle).ok().flatten();
        found.filter(|it| (**it).kind == Kind::Partitioned)
    }
}

/// Calls the lower half for an active request.
///
/// # Safety
/// As [`of`]; `call` must be the real MPI's function.
unsafe fn with(
    handle: *mut Object,
    name: &'static CStr,
    call: impl FnOnce(&'static Direct, Word) -> Option<c_int>,
) -> c_int {
    // SAFETY: `of` has found one of these requests, so its word is the real MPI's, which `call` gets.
    unsafe {
        let (Some(it), Some(table)) = (of(handle), table()) else {
            return raise(ptr::null_mut(), request::ERR_REQUEST, name);
        };
        match call(table, (*it).head.lower) {
            None => refused(name),
            Some(0) => 0,
            Some(code) => raise((*it).communicator, direct::error(code), name),
        }
    }
}

/// `MPI_Pready`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn pready(partition: c_int, request: *mut Object) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `with` looks at the handle; the partition is a number that the real MPI checks.
    unsafe {
        with(request, c"MPI_Pready", |table, word| {
            let function = table.pready?;
            Some(cross(|_| function(partition, word)))
        })
    }
}

/// `MPI_Pready_range`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn pready_range(low: c_int, high: c_int, request: *mut Object) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `with` looks at the handle; both ends of the range are numbers that the real MPI checks.
    unsafe {
        with(request, c"MPI_Pready_range", |table, word| {
            let function = table.pready_range?;
            Some(cross(|_| function(low, high, word)))
        })
    }
}

/// `MPI_Pready_list`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn pready_list(length: c_int, list: *const c_int, request: *mut Object) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `with` looks at the handle; MPI demands that `list` has `length` elements, and they are read during the call only.
    unsafe {
        with(request, c"MPI_Pready_list", |table, word| {
            let function = table.pready_list?;
            Some(cross(|_| function(length, list, word)))
        })
    }
}

/// `MPI_Parrived`. A request that has come to its end while the rank was parked has all partitions.
///
/// # Safety
/// As the MPI function.
pub unsafe fn parrived(request: *mut Object, partition: c_int, flag: *mut c_int) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `of` looks at the handle; a flag that is not null is writable, as MPI demands.
    unsafe {
        let over = of(request).is_some_and(|it| (*it).state == State::Done);
        if over && !flag.is_null() {
            *flag = 1;
            return 0;
        }
        with(request, c"MPI_Parrived", |table, word| {
            let function = table.parrived?;
            Some(cross(|_| function(word, partition, flag)))
        })
    }
}

/// Writes down that such requests exist: while the rank is parked, on the driver thread.
pub fn describe(text: &mut Text) {
    // SAFETY: `live` gives live requests, and every other thread is stopped while the rank is parked.
    let is_one = |request: &*mut Request| unsafe { (**request).kind == Kind::Partitioned };
    let count = request::live().iter().filter(|it| is_one(it)).count();
    if count != 0 {
        text.reason(
            Code::PartitionedRequest,
            format_args!(
                "{count} partitioned request(s) are there (MPI_Psend_init, MPI_Precv_init)"
            ),
        );
    }
}
