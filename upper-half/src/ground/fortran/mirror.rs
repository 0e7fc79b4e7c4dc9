//! The fields of Open MPI's objects that its Fortran layer touches by itself.
//!
//! Open MPI's description, `wrappers/abi/openmpi.txt`, tells their offsets, their meaning and their readers.

use std::ffi::{c_char, c_int, c_void};

use crate::ground::description::internals::{
    COMMUNICATOR_ATTRIBUTES, COMMUNICATOR_FLAGS, COMMUNICATOR_IS_INTER, DATATYPE_ATTRIBUTES,
    GREQUEST_IN_C, GROUP_NUMBER, GROUP_SIZE, HANDLER_CXX_DISPATCH, LOCAL_GROUP, OPERATOR_FLAGS,
    OPERATOR_IS_FORTRAN, REMOTE_GROUP, REQUEST_NUMBER, WINDOW_ATTRIBUTES,
};
use stillpoint_wrappers::gate::HandleKind;

use crate::ground::object::Object;

const _: () = assert!(core::mem::offset_of!(Object, fortran) == GROUP_NUMBER);

/// The shadows that [`LOCAL_GROUP`] and [`REMOTE_GROUP`] lead to: free room in a communicator's slot.
const LOCAL_SHADOW: usize = 0x180;
const REMOTE_SHADOW: usize = 0x1a0;

/// The offset of a kind's attribute table.
const fn attributes(kind: HandleKind) -> Option<usize> {
    match kind {
        HandleKind::Communicator => Some(COMMUNICATOR_ATTRIBUTES),
        HandleKind::Datatype => Some(DATATYPE_ATTRIBUTES),
        HandleKind::Window => Some(WINDOW_ATTRIBUTES),
        _ => None,
    }
}

/// Writes a field of a foreign layout.
///
/// # Safety
/// `offset` must lie within the room of the live object, outside its head.
unsafe fn put<T>(object: *mut Object, offset: usize, value: T) {
    // SAFETY: `offset` lies within the object's room, outside its head, by the caller's promise.
    unsafe {
        object
            .cast::<u8>()
            .add(offset)
            .cast::<T>()
            .write_unaligned(value)
    };
}

/// Lays out the fields that the Fortran layer expects in a new object, or lays them out again when the object's
/// Fortran number has changed.
///
/// # Safety
/// `object` must be a live object with the room of its kind.
pub unsafe fn mirror(object: *mut Object) {
    // SAFETY: offsets are within the room of the kinds that they belong to.
    unsafe {
        let kind = (*object).kind;
        if kind == HandleKind::Request as u16 {
            put(object, REQUEST_NUMBER, (*object).fortran);
            put(object, GREQUEST_IN_C, 1u8);
        } else if kind == HandleKind::Operator as u16 {
            put(object, OPERATOR_FLAGS, 0u32);
        } else if kind == HandleKind::Errhandler as u16 {
            put(object, HANDLER_CXX_DISPATCH, 0usize);
        }
        for of in [
            HandleKind::Communicator,
            HandleKind::Datatype,
            HandleKind::Window,
        ] {
            // An attribute table's "address" is its object's: our functions need nothing else.
            if let (true, Some(offset)) = (kind == of as u16, attributes(of)) {
                put(object, offset, object);
            }
        }
    }
}

/// Notes a request's new Fortran number where the Fortran layer looks for it.
///
/// # Safety
/// `object` must be a live object.
pub unsafe fn renumber(object: *mut Object, number: i32) {
    // SAFETY: the object is alive, by the caller's promise; a request's room has a place for the number.
    unsafe {
        if (*object).kind == HandleKind::Request as u16 {
            put(object, REQUEST_NUMBER, number);
        }
    }
}

/// Whether a generalized request's functions are C's, as the Fortran layer has noted in it.
///
/// # Safety
/// `request` must be a request that was laid out.
pub unsafe fn is_in_c(request: *mut Object) -> bool {
    // SAFETY: the offset is within a request's room.
    unsafe { *request.cast::<u8>().add(GREQUEST_IN_C) != 0 }
}

/// Whether an operator's function takes Fortran's arguments, as the Fortran layer has noted in it.
///
/// # Safety
/// `operator` must be an operator that was laid out.
pub unsafe fn takes_fortran(operator: *mut Object) -> bool {
    // SAFETY: the offset is within an operator's room.
    let flags = unsafe {
        let flags = operator.cast::<u8>().add(OPERATOR_FLAGS).cast::<u32>();
        flags.read_unaligned()
    };
    flags & OPERATOR_IS_FORTRAN != 0
}

/// Lays out a communicator's groups: `remote` is the remote group's size of an intercommunicator.
///
/// # Safety
/// `object` must be a live communicator with room for it.
pub unsafe fn mirror_groups(object: *mut Object, local: i32, remote: Option<i32>) {
    // SAFETY: offsets are within a communicator's room.
    unsafe {
        let flags = if remote.is_some() {
            COMMUNICATOR_IS_INTER
        } else {
            0
        };
        put(object, COMMUNICATOR_FLAGS, flags);
        put(object, LOCAL_SHADOW + GROUP_SIZE, local);
        put(object, REMOTE_SHADOW + GROUP_SIZE, remote.unwrap_or(local));
        let base = object.cast::<u8>();
        put(object, LOCAL_GROUP, base.add(LOCAL_SHADOW));
        put(object, REMOTE_GROUP, base.add(REMOTE_SHADOW));
    }
}

/// Calls an error handler of the former C++ bindings, which have left the way to call it in the handler.
///
/// # Safety
/// `handler` must be a live error handler that they made with `function`.
pub unsafe fn call_cxx_handler(
    handler: *mut Object,
    object: *mut Object,
    error: c_int,
    name: *const c_char,
    function: usize,
) {
    type Dispatch = unsafe extern "C" fn(*mut *mut Object, *mut c_int, *const c_char, usize);
    // SAFETY: the field holds a function of that type, or null.
    unsafe {
        let field = handler.cast::<u8>().add(HANDLER_CXX_DISPATCH);
        let dispatch: Option<Dispatch> = field.cast::<Option<Dispatch>>().read_unaligned();
        if let Some(dispatch) = dispatch {
            let (mut object, mut error) = (object, error);
            dispatch(&raw mut object, &raw mut error, name, function);
        }
    }
}

/// Calls an operator's function of the former C++ bindings through the function that they have given for that.
///
/// # Safety
/// `intercept` must be theirs; the vectors, the count and the handle's place as MPI gives them to an operator.
pub unsafe fn call_cxx_operator<H>(
    intercept: usize,
    (inputs, results): (*mut c_void, *mut c_void),
    count: *mut c_int,
    datatype: *mut H,
    function: usize,
) {
    type Intercept<H> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut H, usize);
    // SAFETY: `intercept` is the bindings' function, by the caller's promise, and so has this type; the vectors are MPI's for the time of the call.
    unsafe {
        let intercept: Intercept<H> = core::mem::transmute(intercept);
        intercept(inputs, results, count, datatype, function);
    }
}
