//! MPI's own attributes, copied into our own memory.

use std::ffi::c_int;

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use stillpoint_wrappers::gate::HandleKind;

use super::store::{Attribute, Keyval, Language, STORE, Store, Value};
use crate::ground::object::Object;
use crate::ground::{abi, crossing};

/// Standard-ABI values of the keyvals of communicators.
const OF_COMMUNICATORS: [i32; 7] = [501, 502, 503, 504, 505, LAST_USED_CODE, 507];
/// `MPI_TAG_UB`.
const TAG_BOUND: i32 = 501;
/// `MPI_LASTUSEDCODE`.
const LAST_USED_CODE: i32 = 506;
/// `MPI_UNIVERSE_SIZE`.
const UNIVERSE: i32 = 507;
/// `MPI_WIN_BASE`, whose value is an address.
const WINDOW_BASE: i32 = 601;
/// `MPI_WIN_CREATE_FLAVOR`.
const FLAVOR: i32 = 604;
/// Standard-ABI values of the keyvals of windows and how many bytes their values have.
const OF_WINDOWS: [(i32, usize); 5] = [(WINDOW_BASE, 0), (602, 4), (603, 8), (FLAVOR, 4), (605, 4)];

fn keyval(kind: HandleKind, language: Language) -> Keyval {
    Keyval {
        kind,
        language,
        copy: 0,
        delete: 0,
        extra: 0,
        predefined: true,
        freed: AtomicBool::new(false),
        proxies: Keyval::no_proxies(),
    }
}

fn hang(object: *mut Object, kind: HandleKind, standard: i32, value: Value) {
    hang_in(&mut STORE.lock(), object, kind, standard, value);
}

/// Hangs an attribute on an object that does not have it. One that is there stays: C knows an integer by its address, which the application may have.
fn hang_once(object: *mut Object, kind: HandleKind, standard: i32, value: Value) {
    let mut store = STORE.lock();
    let number = abi::keyval_from_neutral(standard);
    if store.get(object as usize, number).is_none() {
        hang_in(&mut store, object, kind, standard, value);
    }
}

fn hang_in(store: &mut Store, object: *mut Object, kind: HandleKind, standard: i32, value: Value) {
    let number = abi::keyval_from_neutral(standard);
    if let Some(keyval) = store.keyval(kind, number) {
        store.set(
            object as usize,
            Attribute {
                number,
                keyval,
                value,
            },
        );
    }
}

/// Called once when MPI has started: makes the predefined keyvals and asks the lower half for the values
/// that `MPI_COMM_WORLD` has, except the size of the universe ([`universe`]).
///
/// # Safety
/// Inside a stub.
pub unsafe fn initialise(last_used_code: c_int) {
    for standard in OF_COMMUNICATORS {
        let keyval = keyval(HandleKind::Communicator, Language::FortranInteger);
        STORE
            .lock()
            .predefine(abi::keyval_from_neutral(standard), keyval);
    }
    for (standard, _) in OF_WINDOWS {
        let keyval = keyval(HandleKind::Window, Language::C);
        STORE
            .lock()
            .predefine(abi::keyval_from_neutral(standard), keyval);
    }
    let world = abi::predefined(HandleKind::Communicator, 257);
    for standard in OF_COMMUNICATORS.into_iter().filter(|&it| it != UNIVERSE) {
        let (mut value, mut flag): (*const c_int, c_int) = (std::ptr::null(), 0);
        // SAFETY: inside; the lower half's value is an integer that its pointer leads to.
        unsafe {
            let (word, place) = ((*world).lower, (&raw mut value).cast());
            let error =
                crossing::cross(|d| (d.comm_get_attr)(word, standard, place, &raw mut flag));
            if error == 0 && flag != 0 && !value.is_null() {
                let value = match standard {
                    LAST_USED_CODE => last_used_code,
                    501.. if standard == 502 || standard == 503 => abi::rank_from_neutral(*value),
                    _ => *value,
                };
                hang(
                    world,
                    HandleKind::Communicator,
                    standard,
                    Value::Integer(Box::new(value)),
                );
            }
        }
    }
}

/// The object that has an attribute: MPICH gives MPI's own attributes on every communicator, Open MPI on those that have come from `MPI_COMM_WORLD` by copies.
pub fn told_by(object: *mut Object, kind: HandleKind, number: i32) -> *mut Object {
    let is_told = |standard: &i32| abi::keyval_from_neutral(*standard) == number;
    if cfg!(application = "openmpi")
        || kind != HandleKind::Communicator
        || !OF_COMMUNICATORS.iter().any(is_told)
    {
        return object;
    }
    abi::predefined(HandleKind::Communicator, 257)
}

/// Gives a communicator with MPI's own attributes the size of the universe, if that is asked for. Not before: a process of MPICH without a
/// launcher starts one to find out.
///
/// # Safety
/// Inside a stub, nothing locked.
pub unsafe fn universe(object: *mut Object, number: i32) {
    /// The size that MPI has said, or 0 before that.
    static SAID: AtomicI32 = AtomicI32::new(0);
    let world = abi::predefined(HandleKind::Communicator, 257);
    if number != abi::keyval_from_neutral(UNIVERSE) {
        return;
    }
    {
        let store = STORE.lock();
        let has = |standard| {
            let number = abi::keyval_from_neutral(standard);
            store.get(object as usize, number).is_some()
        };
        if has(UNIVERSE) || !has(TAG_BOUND) {
            return;
        }
    }
    if SAID.load(Ordering::Relaxed) == 0 {
        let (mut value, mut flag): (*const c_int, c_int) = (std::ptr::null(), 0);
        // SAFETY: `MPI_COMM_WORLD` has its word; the lower half gives the address of an int that it keeps, or sets no flag.
        unsafe {
            let (word, place) = ((*world).lower, (&raw mut value).cast());
            let error =
                crossing::cross(|d| (d.comm_get_attr)(word, UNIVERSE, place, &raw mut flag));
            if error != 0 || flag == 0 || value.is_null() {
                return;
            }
            SAID.store(*value, Ordering::Relaxed);
        }
    }
    let said = Value::Integer(Box::new(SAID.load(Ordering::Relaxed)));
    hang_once(object, HandleKind::Communicator, UNIVERSE, said);
}

/// Whether the application has been told the largest tag: then it may use all up to that one for good.
static BOUND_TOLD: AtomicBool = AtomicBool::new(false);

/// Notes that the application gets to know an attribute's value.
pub fn note_told(number: c_int) {
    if number == abi::keyval_from_neutral(TAG_BOUND) {
        BOUND_TOLD.store(true, Ordering::Relaxed);
    }
}

/// The library that a job is restarted on has fewer tags than the application was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallerBound {
    pub told: c_int,
    pub now: c_int,
}

/// Called in a restart, whose library may be another one. A bound that the application has been told stays true, or the restart is refused. A bound
/// that it has not been told becomes this library's.
///
/// # Safety
/// Inside a stub, `MPI_COMM_WORLD`'s word in place.
pub unsafe fn under_another_library() -> Result<(), SmallerBound> {
    let world = abi::predefined(HandleKind::Communicator, 257);
    let number = abi::keyval_from_neutral(TAG_BOUND);
    let (mut value, mut flag): (*const c_int, c_int) = (std::ptr::null(), 0);
    // SAFETY: `MPI_COMM_WORLD` has its word, by the caller's promise; the lower half gives the address of an int that it keeps, or sets no flag.
    let now = unsafe {
        let (word, place) = ((*world).lower, (&raw mut value).cast());
        let error = crossing::cross(|d| (d.comm_get_attr)(word, TAG_BOUND, place, &raw mut flag));
        if error != 0 || flag == 0 || value.is_null() {
            return Ok(());
        }
        *value
    };
    let mut store = STORE.lock();
    let told = store
        .get(world as usize, number)
        .map(|bound| bound.value.seen_by(Language::FortranInteger) as c_int);
    match told {
        Some(told) if now < told && BOUND_TOLD.load(Ordering::Relaxed) => {
            Err(SmallerBound { told, now })
        }
        Some(_) if !BOUND_TOLD.load(Ordering::Relaxed) => {
            store.change_integers(number, now);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Notes a new value of `MPI_LASTUSEDCODE`, at the address that the application may know.
pub fn note_last_used_code(code: c_int) {
    let world = abi::predefined(HandleKind::Communicator, 257);
    let value = Value::Integer(Box::new(code));
    hang_once(world, HandleKind::Communicator, LAST_USED_CODE, value);
    let number = abi::keyval_from_neutral(LAST_USED_CODE);
    STORE.lock().change_integers(number, code);
}

/// Whether a copy of a communicator has a predefined attribute too.
pub fn is_copied(number: i32) -> bool {
    number != abi::keyval_from_neutral(LAST_USED_CODE)
}

/// Called for every new window: copies MPI's attributes of it.
///
/// # Safety
/// Inside a stub; `window` must be a live window whose word is in place.
pub unsafe fn describe_window(window: *mut Object) {
    for (standard, bytes) in OF_WINDOWS {
        let (mut value, mut flag): (*const u8, c_int) = (std::ptr::null(), 0);
        // SAFETY: inside; the value has that many bytes where the pointer leads, and the base is the
        // pointer itself.
        unsafe {
            let (word, place) = ((*window).lower, (&raw mut value).cast());
            let error = crossing::cross(|d| (d.win_get_attr)(word, standard, place, &raw mut flag));
            if error != 0 || flag == 0 {
                continue;
            }
            let value = match bytes {
                4 => Value::Integer(Box::new(value.cast::<i32>().read_unaligned())),
                8 => Value::Address(Box::new(value.cast::<isize>().read_unaligned())),
                _ => Value::Pointer(value as usize),
            };
            hang(
                window,
                HandleKind::Window,
                standard,
                converted(standard, value),
            );
        }
    }
}

/// Says of a window how it was made, and where its memory is: both may differ in the lower half. `flavor` is the standard ABI's.
pub fn say_memory(window: *mut Object, flavor: i32, base: usize) {
    let value = Value::Integer(Box::new(abi::flavor_from_neutral(flavor)));
    hang(window, HandleKind::Window, FLAVOR, value);
    hang(
        window,
        HandleKind::Window,
        WINDOW_BASE,
        Value::Pointer(base),
    );
}

/// A window's value in the application's terms.
fn converted(standard: i32, value: Value) -> Value {
    match (standard, value) {
        (FLAVOR, Value::Integer(value)) => {
            Value::Integer(Box::new(abi::flavor_from_neutral(*value)))
        }
        (605, Value::Integer(value)) => Value::Integer(Box::new(abi::model_from_neutral(*value))),
        (_, value) => value,
    }
}
