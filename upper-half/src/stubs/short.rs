//! The stubs of the functions that programs call most often, as `ground::arch` writes them out: the form of each, and the function that it falls back to.
//!
//! A call that they cannot do goes to the function that would be the stub without them, from the beginning.

use core::ffi::{CStr, c_char, c_int};

use crate::ground::crossing;
use crate::ground::object::Comm;
use crate::objects::errhandler::raise;
use crate::operations::direct;

/// The end of the stub of a message or probe that has failed with one of the real MPI's codes.
///
/// # Safety
/// At the end of the function's stub; `comm` must lead to an object, and `name` be the function's, a C string.
pub unsafe extern "C" fn failed(comm: Comm, code: c_int, name: *const c_char) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: `comm` leads to an object, since the stub has gone the short way with it, and `name` is a C string of this library's.
    unsafe { raise(comm, direct::error(code), CStr::from_ptr(name)) }
}

/// The body of a function's stub, a naked function.
macro_rules! short {
    ($function:ident, $name:literal, $long:path) => {
        $crate::stubs::short::short!(@ $function, $name, $long, core::mem::offset_of!(
            stillpoint_wrappers::direct::Direct,
            $function
        ))
    };
    (@ send, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::sends!($name, $slot, $long) };
    (@ bsend, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::sends!($name, $slot, $long) };
    (@ rsend, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::sends!($name, $slot, $long) };
    (@ isend, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::begins!($name, $slot, $long, Send) };
    (@ ibsend, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::begins!($name, $slot, $long, BufferedSend) };
    (@ irsend, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::begins!($name, $slot, $long, ReadySend) };
    (@ irecv, $name:literal, $long:path, $slot:expr) => {
        $crate::ground::arch::receive_begun!(
            $name, table: $crate::operations::direct::TABLE, slot: $slot, request: $crate::operations::request::Request,
            next: $crate::operations::request::light::ring::NEXT, link: $crate::operations::request::light::ring::LINK,
            resting: $crate::operations::request::light::Form::RESTING.number(),
            receive: $crate::operations::request::light::Form::RECEIVE.number(), long: $long,
            failed: $crate::stubs::short::failed
        )
    };
    (@ recv, $name:literal, $long:path, $slot:expr) => { $crate::stubs::short::receives!($slot, $long) };
    (@ iprobe, $name:literal, $long:path, $slot:expr) => {
        $crate::ground::arch::probed!(
            $name, table: $crate::operations::direct::TABLE, slot: $slot, drained: $crate::operations::messages::drain::WAITING, long: $long,
            failed: $crate::stubs::short::failed
        )
    };
    (@ improbe, $name:literal, $long:path, $slot:expr) => {
        $crate::ground::arch::matched!(
            $name, table: $crate::operations::direct::TABLE, slot: $slot, drained: $crate::operations::messages::drain::WAITING, long: $long,
            found: $crate::operations::probe::found, failed: $crate::stubs::short::failed
        )
    };
    (@ wait, $name:literal, $long:path, $slot:expr) => {
        $crate::ground::arch::waited!(
            table: $crate::operations::direct::TABLE, own: $crate::operations::completion::real_wait::WORTH_IT,
            wait: core::mem::offset_of!(stillpoint_wrappers::direct::Direct, wait),
            test: core::mem::offset_of!(stillpoint_wrappers::direct::Direct, test),
            form: $crate::operations::request::light::Form::RECEIVE.number(),
            resting: $crate::operations::request::light::Form::RESTING.number(),
            sent: $crate::operations::request::over::REQUEST, null: $crate::operations::request::NULL_HANDLE,
            told: $crate::operations::completion::told_when_waited,
            long: $long,
            over: $crate::operations::completion::over_when_asked,
            at_checkpoint: $crate::operations::completion::over_at_checkpoint, failed: $crate::operations::completion::wait_failed
        )
    };
    (@ test, $name:literal, $long:path, $slot:expr) => {
        $crate::ground::arch::asked!(
            table: $crate::operations::direct::TABLE, slot: $slot, one: false, form: $crate::operations::request::light::Form::RECEIVE.number(), long: $long,
            over: $crate::operations::completion::over_when_asked, failed: $crate::operations::completion::test_failed
        )
    };
    (@ testany, $name:literal, $long:path, $slot:expr) => {
        $crate::ground::arch::asked!(
            table: $crate::operations::direct::TABLE, slot: $slot, one: true, form: $crate::operations::request::light::Form::RECEIVE.number(), long: $long,
            over: $crate::operations::completion::over_when_asked, failed: $crate::operations::completion::testany_failed
        )
    };
}

/// A blocking send of any mode.
macro_rules! sends {
    ($name:literal, $slot:expr, $long:path) => {
        $crate::ground::arch::sent!(
            $name, table: $crate::operations::direct::TABLE, slot: $slot, long: $long, failed: $crate::stubs::short::failed
        )
    };
}

/// A blocking receive, by the real MPI's own.
#[cfg(not(application = "mpich"))]
macro_rules! receives {
    ($slot:expr, $long:path) => {
        $crate::ground::arch::received!(long: $long)
    };
}

/// A blocking receive, by the real MPI's own or of a message that is there.
#[cfg(application = "mpich")]
macro_rules! receives {
    ($slot:expr, $long:path) => {
        $crate::ground::arch::received_if_there!(
            table: $crate::operations::direct::TABLE, probe: core::mem::offset_of!(stillpoint_wrappers::direct::Direct, iprobe), slot: $slot,
            drained: $crate::operations::messages::drain::WAITING, long: $long, failed: $crate::operations::p2p::receive_of_one_has_failed
        )
    };
}

/// A nonblocking send of any mode.
macro_rules! begins {
    ($name:literal, $slot:expr, $long:path, $kind:ident) => {
        $crate::ground::arch::send_begun!(
            $name, table: $crate::operations::direct::TABLE, slot: $slot, kind: $crate::operations::request::Kind::$kind as u32, long: $long,
            word: $crate::operations::request::over::WORD, over: $crate::operations::request::over::REQUEST,
            under_way: $crate::operations::p2p::under_way,
            failed: $crate::stubs::short::failed
        )
    };
}
pub(crate) use {begins, receives, sends, short};
