//! The internals of Open MPI that its Fortran and C++ layers call directly, bound to our objects.
//!
//! Those layers belong to the application and stay as they are. They find here what they would otherwise reach in the application's
//! own copy of Open MPI, which never starts. Names and signatures are in its description,
//! `wrappers/abi/openmpi.txt`. The exported functions are made from that (`internals.rs`), and call the functions here.

use std::ffi::{CStr, c_char, c_int, c_void};

use std::sync::atomic::AtomicBool;

use stillpoint_wrappers::gate::HandleKind;

use crate::ground::abi::{self, Fint};
use crate::ground::description::{self, internals};
use crate::ground::object::Object;
use crate::ground::{crossing, handle};
use crate::objects::attribute::store::{Keyval, Language, STORE, Value};
use crate::objects::errhandler::{self, Function, Handler, run};
use crate::objects::outcome::class;
use crate::objects::{attribute, datatype, operator};

/// `ompi_attribute_type_t`.
const fn attribute_kind(kind: c_int) -> HandleKind {
    match kind {
        internals::ATTRIBUTE_OF_DATATYPE => HandleKind::Datatype,
        internals::ATTRIBUTE_OF_WINDOW => HandleKind::Window,
        _ => HandleKind::Communicator,
    }
}

/// Makes a keyval; Open MPI's layers do not mind the null functions.
///
/// # Safety
/// `place` must be writable.
unsafe fn keyval(
    kind: c_int,
    language: Language,
    copy: usize,
    delete: usize,
    extra: usize,
    place: *mut c_int,
) -> c_int {
    let _inside = crossing::enter();
    let keyval = Keyval {
        kind: attribute_kind(kind),
        language,
        copy,
        delete,
        extra,
        predefined: false,
        freed: AtomicBool::new(false),
        proxies: Keyval::no_proxies(),
    };
    let number = STORE.lock().add(keyval);
    // SAFETY: `place` is writable, by the caller's promise.
    unsafe { *place = number };
    0
}

/// `ompi_attr_create_keyval`: of the C++ bindings, whose functions have C's types.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_create_keyval(
    kind: c_int,
    copy: usize,
    delete: usize,
    place: *mut c_int,
    extra: *mut c_void,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    // SAFETY: Open MPI's bindings pass a place for the new keyval, which nobody else writes to during the call.
    unsafe { keyval(kind, Language::Cxx, copy, delete, extra as usize, place) }
}

/// `ompi_attr_create_keyval_fint`: `MPI_KEYVAL_CREATE`.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_create_keyval_fint(
    kind: c_int,
    copy: usize,
    delete: usize,
    place: *mut c_int,
    extra: Fint,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    let extra = extra as isize as usize;
    // SAFETY: Open MPI's Fortran layer passes a place for the new keyval, on its own stack or the application's.
    unsafe { keyval(kind, Language::FortranInteger, copy, delete, extra, place) }
}

/// `ompi_attr_create_keyval_aint`: `MPI_COMM_CREATE_KEYVAL` and its like.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_create_keyval_aint(
    kind: c_int,
    copy: usize,
    delete: usize,
    place: *mut c_int,
    extra: isize,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    // SAFETY: Open MPI's Fortran layer passes a writable place for the new keyval; the extra state is only kept as a number.
    unsafe {
        keyval(
            kind,
            Language::FortranAddress,
            copy,
            delete,
            extra as usize,
            place,
        )
    }
}

/// # Safety
/// `object` must be null or a handle.
unsafe fn set(object: *mut Object, kind: c_int, number: c_int, value: Value) -> c_int {
    let kind = attribute_kind(kind);
    let name = match kind {
        HandleKind::Window => c"MPI_Win_set_attr",
        HandleKind::Datatype => c"MPI_Type_set_attr",
        _ => c"MPI_Comm_set_attr",
    };
    // SAFETY: `valid` looks at the object; the value is only kept, and nothing is locked.
    unsafe {
        run(object, name, || {
            if !handle::valid(object, kind) {
                return Err(class::ARG);
            }
            attribute::set(object, kind, number, value, true)
        })
    }
}

/// `ompi_attr_set_fint`.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_set_fint(
    kind: c_int,
    object: *mut Object,
    _table: *mut *mut Object,
    number: c_int,
    value: Fint,
    _predefined: bool,
) -> c_int {
    let value = Value::new(Language::FortranInteger, value as isize);
    // SAFETY: `set` looks at the object before it uses it; the layer passes the one that the application's handle leads to.
    unsafe { set(object, kind, number, value) }
}

/// `ompi_attr_set_aint`.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_set_aint(
    kind: c_int,
    object: *mut Object,
    _table: *mut *mut Object,
    number: c_int,
    value: isize,
    _predefined: bool,
) -> c_int {
    let value = Value::new(Language::FortranAddress, value);
    // SAFETY: `set` looks at the object before it uses it; the value is only kept.
    unsafe { set(object, kind, number, value) }
}

/// The "attribute table" that [`super::mirror`] lays out is the object itself.
///
/// # Safety
/// `table` must be null or an object; the places writable.
unsafe fn get(
    table: *mut Object,
    number: c_int,
    language: Language,
    flag: *mut c_int,
) -> Result<Option<isize>, c_int> {
    let _inside = crossing::enter();
    // SAFETY: `valid` looks at `table`, which is null or an object; `flag` is writable, by the caller's promise.
    unsafe {
        *flag = 0;
        let kinds = [
            HandleKind::Communicator,
            HandleKind::Datatype,
            HandleKind::Window,
        ];
        let Some(kind) = kinds.into_iter().find(|kind| handle::valid(table, *kind)) else {
            return Err(abi::error_from_neutral(class::ARG));
        };
        let found = attribute::get(table, kind, number, language);
        *flag = c_int::from(matches!(found, Ok(Some(_))));
        found.map_err(abi::error_from_neutral)
    }
}

/// `ompi_attr_get_fint`.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_get_fint(
    table: *mut Object,
    number: c_int,
    value: *mut Fint,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the layer passes the object itself as its "attribute table", and writable places for value and flag.
    unsafe {
        match get(table, number, Language::FortranInteger, flag) {
            Ok(Some(found)) => *value = found as Fint,
            Ok(None) => {}
            Err(error) => return error,
        }
    }
    0
}

/// `ompi_attr_get_aint`.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn attr_get_aint(
    table: *mut Object,
    number: c_int,
    value: *mut isize,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the layer passes the object itself as its "attribute table"; `value` is an address's place, and is written only if there is a value.
    unsafe {
        match get(table, number, Language::FortranAddress, flag) {
            Ok(Some(found)) => *value = found,
            Ok(None) => {}
            Err(error) => return error,
        }
    }
    0
}

/// `ompi_errhandler_create`: `kind` is the object's, `language` the function's.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn errhandler_create(kind: c_int, function: usize, language: c_int) -> *mut Object {
    let _inside = crossing::enter();
    let kind = match kind {
        internals::HANDLER_OF_WINDOW => HandleKind::Window,
        internals::HANDLER_OF_FILE => HandleKind::File,
        _ => HandleKind::Communicator,
    };
    let function = match language {
        internals::HANDLER_IN_CXX => Function::Cxx(function),
        internals::HANDLER_IN_FORTRAN => Function::Fortran(function),
        _ => Function::C(function),
    };
    errhandler::new_handler(Handler { kind, function })
}

/// `ompi_errhandler_invoke`: an error that the layer itself has found.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn errhandler_invoke(
    _handler: *mut Object,
    object: *mut Object,
    _kind: c_int,
    error: c_int,
    message: *const c_char,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: a message that is not null is a C string of the layer's; it is only read during the call. The object is null or one that the layer was given.
    unsafe {
        let message = if message.is_null() {
            c"MPI"
        } else {
            CStr::from_ptr(message)
        };
        errhandler::raise_own(object, error, message)
    }
}

/// `ompi_mpi_errors_are_fatal_comm_handler`: called for a function before MPI has started.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn mpi_errors_are_fatal_comm_handler(
    _object: *mut *mut Object,
    _error: *mut c_int,
    _message: *const c_char,
) {
    let _inside = crossing::enter();
    // SAFETY: the stub of the layer's function is inside from here on.
    unsafe { errhandler::outside(c"MPI") };
}

/// `ompi_datatype_match_size`: the datatype of a class and
/// size; the null datatype if there is none.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn datatype_match_size(size: c_int, kind: u16, _language: u16) -> *mut Object {
    let _inside = crossing::enter();
    // The typeclasses of the standard ABI: integer, real, complex.
    let class = match kind {
        internals::DATA_INTEGER => 192,
        internals::DATA_REAL => 193,
        _ => 194,
    };
    let mut word = 0;
    // SAFETY: the thread is inside; `word` is a local variable.
    let error = unsafe { crossing::cross(|d| (d.type_match_size)(class, size, &raw mut word)) };
    let found = if error == 0 {
        datatype::by_word(word)
    } else {
        std::ptr::null_mut()
    };
    if found.is_null() {
        abi::predefined(HandleKind::Datatype, 512)
    } else {
        found
    }
}

/// `ompi_op_set_cxx_callback`: the operator was made with the function that calls `function`.
///
/// # Safety
/// As Open MPI's function.
pub unsafe fn op_set_cxx_callback(object: *mut Object, function: usize) {
    let _inside = crossing::enter();
    // SAFETY: `valid` looks at the operator, which the bindings have just made, so no other thread uses it yet.
    unsafe {
        if handle::valid(object, HandleKind::Operator) && !(*object).predefined() {
            operator::set_intercept(object, function);
        }
    }
}

/// No checks by the layers themselves; ours come later.
pub const MPI_PARAM_CHECK: bool = false;

/// Any source, any tag, no error, nothing received.
pub const STATUS_EMPTY: abi::Status = abi::Status {
    source: description::ANY_SOURCE,
    tag: description::ANY_TAG,
    error: description::SUCCESS,
    cancelled: 0,
    bytes: 0,
};
