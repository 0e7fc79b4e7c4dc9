//! Names that programs and layers for Fortran and C++ need of Open MPI's library besides functions of MPI: special addresses, predefined callbacks under the
//! names that Fortran compilers give them, strings, and the classes and lists of its object system.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use crate::ground::abi::{Aint, Fint};

/// Data that layers and programs write to, under the library's own name.
#[repr(transparent)]
struct Shared<T>(UnsafeCell<T>);

// SAFETY: this library does not touch the value; those that do, order their accesses as with the library's own.
unsafe impl<T> Sync for Shared<T> {}

/// Addresses that stand for something in Fortran: nobody reads or writes there.
macro_rules! special_addresses {
    ($($name:ident: $bytes:literal,)*) => {
        $(#[unsafe(no_mangle)]
        static $name: Shared<[u8; $bytes]> = Shared(UnsafeCell::new([0; $bytes]));)*
    };
}

special_addresses! {
    mpi_fortran_argv_null_: 1,
    mpi_fortran_argvs_null_: 1,
    mpi_fortran_bottom_: 4,
    mpi_fortran_errcodes_ignore_: 4,
    mpi_fortran_in_place_: 4,
    mpi_fortran_status_ignore_: 8,
    mpi_fortran_statuses_ignore_: 8,
    mpi_fortran_unweighted_: 4,
    mpi_fortran_weights_empty_: 4,
}

/// A pointer to one of them, for C.
#[repr(transparent)]
struct Constant(*const c_void);

// SAFETY: the pointer is not changed, and nothing is read or written there.
unsafe impl Sync for Constant {}

#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static MPI_F_STATUS_IGNORE: Constant = Constant((&raw const mpi_fortran_status_ignore_).cast());
#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static MPI_F_STATUSES_IGNORE: Constant = Constant((&raw const mpi_fortran_statuses_ignore_).cast());

/// Exports a function under the four names that Fortran compilers may give it.
macro_rules! for_fortran {
    ($($body:ident($($parameter:ident: $kind:ty),*): $upper:ident $lower:ident $one:ident $two:ident;)*) => {
        $(for_fortran!(@ $body($($parameter: $kind),*): $upper $lower $one $two);)*
    };
    (@ $body:ident $parameters:tt: $($name:ident)*) => {
        $(for_fortran!(@@ $body $parameters $name);)*
    };
    (@@ $body:ident($($parameter:ident: $kind:ty),*) $name:ident) => {
        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameter: $kind),*) {
            // SAFETY: Fortran code calls it as the library's own.
            unsafe { $body($($parameter),*) }
        }
    };
}

for_fortran! {
    dup(_o: *const Fint, _k: *const Fint, _e: *const Aint, value: *const Aint, copy: *mut Aint, flag: *mut Fint, error: *mut Fint):
        MPI_COMM_DUP_FN mpi_comm_dup_fn mpi_comm_dup_fn_ mpi_comm_dup_fn__;
    dup(_o: *const Fint, _k: *const Fint, _e: *const Aint, value: *const Aint, copy: *mut Aint, flag: *mut Fint, error: *mut Fint):
        MPI_TYPE_DUP_FN mpi_type_dup_fn mpi_type_dup_fn_ mpi_type_dup_fn__;
    dup(_o: *const Fint, _k: *const Fint, _e: *const Aint, value: *const Aint, copy: *mut Aint, flag: *mut Fint, error: *mut Fint):
        MPI_WIN_DUP_FN mpi_win_dup_fn mpi_win_dup_fn_ mpi_win_dup_fn__;
    old_dup(_o: *const Fint, _k: *const Fint, _e: *const Fint, value: *const Fint, copy: *mut Fint, flag: *mut Fint, error: *mut Fint):
        MPI_DUP_FN mpi_dup_fn mpi_dup_fn_ mpi_dup_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_COMM_NULL_COPY_FN mpi_comm_null_copy_fn mpi_comm_null_copy_fn_ mpi_comm_null_copy_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_TYPE_NULL_COPY_FN mpi_type_null_copy_fn mpi_type_null_copy_fn_ mpi_type_null_copy_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_WIN_NULL_COPY_FN mpi_win_null_copy_fn mpi_win_null_copy_fn_ mpi_win_null_copy_fn__;
    no_copy(_o: *const Fint, _k: *const Fint, _e: *const c_void, _v: *const c_void, _c: *mut c_void, flag: *mut Fint, error: *mut Fint):
        MPI_NULL_COPY_FN mpi_null_copy_fn mpi_null_copy_fn_ mpi_null_copy_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_COMM_NULL_DELETE_FN mpi_comm_null_delete_fn mpi_comm_null_delete_fn_ mpi_comm_null_delete_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_TYPE_NULL_DELETE_FN mpi_type_null_delete_fn mpi_type_null_delete_fn_ mpi_type_null_delete_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_WIN_NULL_DELETE_FN mpi_win_null_delete_fn mpi_win_null_delete_fn_ mpi_win_null_delete_fn__;
    delete(_o: *const Fint, _k: *const Fint, _v: *const c_void, _e: *const c_void, error: *mut Fint):
        MPI_NULL_DELETE_FN mpi_null_delete_fn mpi_null_delete_fn_ mpi_null_delete_fn__;
    no_conversion(_u: *mut c_void, _t: *const Fint, _c: *const Fint, _f: *mut c_void, _p: *const i64, _e: *mut Aint, error: *mut Fint):
        MPI_CONVERSION_FN_NULL mpi_conversion_fn_null mpi_conversion_fn_null_ mpi_conversion_fn_null__;
    add(base: *const Aint, displacement: *const Aint, sum: *mut Aint):
        MPI_AINT_ADD_F90 mpi_aint_add_f90 mpi_aint_add_f90_ mpi_aint_add_f90__;
    difference(one: *const Aint, other: *const Aint, result: *mut Aint):
        MPI_AINT_DIFF_F90 mpi_aint_diff_f90 mpi_aint_diff_f90_ mpi_aint_diff_f90__;
    wtime(place: *mut f64): MPI_WTIME_F90 mpi_wtime_f90 mpi_wtime_f90_ mpi_wtime_f90__;
    wtick(place: *mut f64): MPI_WTICK_F90 mpi_wtick_f90 mpi_wtick_f90_ mpi_wtick_f90__;
}

/// The predefined callbacks under their names in C, for communicators, datatypes and windows alike.
macro_rules! for_c {
    ($($copy_all:ident $copy_none:ident $delete_none:ident;)*) => {$(
        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $copy_all(
            _object: *mut c_void,
            _keyval: c_int,
            _extra: *mut c_void,
            value: *mut c_void,
            copy: *mut *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: an attribute's copy function gets places for all that it answers.
            unsafe {
                *flag = 1;
                *copy = value;
            }
            0
        }

        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $copy_none(
            _object: *mut c_void,
            _keyval: c_int,
            _extra: *mut c_void,
            _value: *mut c_void,
            _copy: *mut *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: an attribute's copy function gets places for all that it answers.
            unsafe { *flag = 0 };
            0
        }

        #[allow(non_snake_case)] // The library's name.
        #[unsafe(no_mangle)]
        extern "C" fn $delete_none(
            _object: *mut c_void,
            _keyval: c_int,
            _value: *mut c_void,
            _extra: *mut c_void,
        ) -> c_int {
            0
        }
    )*};
}

for_c! {
    OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_DELETE_FN;
    OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN;
    OMPI_C_MPI_WIN_DUP_FN OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_DELETE_FN;
    OMPI_C_MPI_DUP_FN OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_NULL_DELETE_FN;
}

/// `OMPI_Affinity_str`: this library knows nothing of hardware, and an application's knowledge of it would be wrong after a restart elsewhere.
///
/// # Safety
/// As Open MPI's function.
#[allow(non_snake_case)] // The library's name.
#[unsafe(no_mangle)]
unsafe extern "C" fn OMPI_Affinity_str(
    _format: c_int,
    bound: *mut c_char,
    now: *mut c_char,
    there: *mut c_char,
) -> c_int {
    for place in [bound, now, there] {
        // SAFETY: the caller gives room for three texts.
        unsafe { *place = 0 };
    }
    0
}

const SUCCESS: Fint = 0;
/// `OMPI_ERR_OUT_OF_RESOURCE`.
const NO_MEMORY: c_int = -2;
/// `.true.` and `.false.`, as gfortran and the library have them.
const TRUE: Fint = 1;
const FALSE: Fint = 0;

unsafe fn dup(
    _object: *const Fint,
    _keyval: *const Fint,
    _extra: *const Aint,
    value: *const Aint,
    copy: *mut Aint,
    flag: *mut Fint,
    error: *mut Fint,
) {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe {
        *flag = TRUE;
        *copy = *value;
        *error = SUCCESS;
    }
}

unsafe fn old_dup(
    _object: *const Fint,
    _keyval: *const Fint,
    _extra: *const Fint,
    value: *const Fint,
    copy: *mut Fint,
    flag: *mut Fint,
    error: *mut Fint,
) {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe {
        *flag = TRUE;
        *copy = *value;
        *error = SUCCESS;
    }
}

unsafe fn no_copy(
    _object: *const Fint,
    _keyval: *const Fint,
    _extra: *const c_void,
    _value: *const c_void,
    _copy: *mut c_void,
    flag: *mut Fint,
    error: *mut Fint,
) {
    // SAFETY: an attribute's copy function gets places for all that it answers.
    unsafe {
        *flag = FALSE;
        *error = SUCCESS;
    }
}

unsafe fn delete(
    _object: *const Fint,
    _keyval: *const Fint,
    _value: *const c_void,
    _extra: *const c_void,
    error: *mut Fint,
) {
    // SAFETY: an attribute's delete function gets a place for its error.
    unsafe { *error = SUCCESS }
}

/// MPI knows the function by its address, and does not call it.
unsafe fn no_conversion(
    _user: *mut c_void,
    _datatype: *const Fint,
    _count: *const Fint,
    _file: *mut c_void,
    _position: *const i64,
    _extra: *mut Aint,
    error: *mut Fint,
) {
    // SAFETY: a conversion function gets a place for its error.
    unsafe { *error = SUCCESS }
}

unsafe fn add(base: *const Aint, displacement: *const Aint, sum: *mut Aint) {
    // SAFETY: Fortran gives three variables.
    unsafe { *sum = (*base).wrapping_add(*displacement) }
}

unsafe fn difference(one: *const Aint, other: *const Aint, result: *mut Aint) {
    // SAFETY: Fortran gives three variables.
    unsafe { *result = (*one).wrapping_sub(*other) }
}

unsafe extern "C" {
    safe fn PMPI_Wtime() -> f64;
    safe fn PMPI_Wtick() -> f64;
}

unsafe fn wtime(place: *mut f64) {
    // SAFETY: Fortran gives a variable.
    unsafe { *place = PMPI_Wtime() }
}

unsafe fn wtick(place: *mut f64) {
    // SAFETY: Fortran gives a variable.
    unsafe { *place = PMPI_Wtick() }
}

/// Whether Open MPI itself takes a GPU's memory: no, because this library copies such memory instead (docs/users/gpus.md).
#[allow(non_snake_case)] // The library's name.
#[unsafe(no_mangle)]
extern "C" fn MPIX_Query_cuda_support() -> c_int {
    0
}

/// A Fortran string without the blanks around it.
///
/// # Safety
/// The string must have `length` characters.
unsafe fn trimmed<'a>(string: *const c_char, length: c_int) -> &'a [u8] {
    let length = usize::try_from(length).unwrap_or(0);
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller says that so many characters are there.
    let all = unsafe { core::slice::from_raw_parts(string.cast::<u8>(), length) };
    let is_other = |byte: &u8| *byte != b' ';
    let Some(first) = all.iter().position(is_other) else {
        return &[];
    };
    let last = all.iter().rposition(is_other).unwrap_or(first);
    &all[first..=last]
}

/// Copies a text to memory of the application's, with a NUL behind it; the layer frees it. Null: there is no memory.
fn as_c(text: &[u8]) -> *mut c_char {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    // SAFETY: the memory has room for the text and its NUL.
    unsafe {
        let copy: *mut u8 = libc::malloc(text.len() + 1).cast();
        if !copy.is_null() {
            ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
            *copy.add(text.len()) = 0;
        }
        copy.cast()
    }
}

/// A string for C, which the layer frees.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_string_f2c(
    string: *const c_char,
    length: c_int,
    place: *mut *mut c_char,
) -> c_int {
    // SAFETY: the layer gives a string of that length, and a place.
    unsafe {
        *place = as_c(trimmed(string, length));
        if (*place).is_null() { NO_MEMORY } else { 0 }
    }
}

/// A string for Fortran, with blanks behind it.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_string_c2f(
    from: *const c_char,
    string: *mut c_char,
    length: c_int,
) -> c_int {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: the layer gives a string of C, and room for `length` characters.
    unsafe {
        let bytes = core::ffi::CStr::from_ptr(from).to_bytes();
        let kept = bytes.len().min(length);
        ptr::copy_nonoverlapping(bytes.as_ptr(), string.cast(), kept);
        ptr::write_bytes(string.add(kept).cast::<u8>(), b' ', length - kept);
    }
    0
}

/// A list of strings that grows, with a null at its end, in memory that the layer frees.
struct Strings {
    list: *mut *mut c_char,
    count: usize,
}

impl Strings {
    /// # Safety
    /// The text must come from `malloc`; it becomes the list's.
    unsafe fn push(&mut self, text: *mut c_char) -> bool {
        let bytes = (self.count + 2) * size_of::<*mut c_char>();
        // SAFETY: the list is null or of `malloc`, and has `count` entries and a null.
        unsafe {
            let list: *mut *mut c_char = libc::realloc(self.list.cast(), bytes).cast();
            if text.is_null() || list.is_null() {
                libc::free(text.cast());
                return false;
            }
            *list.add(self.count) = text;
            *list.add(self.count + 1) = ptr::null_mut();
            self.list = list;
        }
        self.count += 1;
        true
    }
}

/// Makes a list of at most `most` strings, which lie `advance` bytes apart; an empty one ends it if `most` is `None`.
///
/// # Safety
/// The array must have the strings, and `place` be writable.
unsafe fn strings(
    array: *const c_char,
    most: Option<usize>,
    length: c_int,
    advance: c_int,
    place: *mut *mut *mut c_char,
) -> c_int {
    let mut made = Strings {
        list: ptr::null_mut(),
        count: 0,
    };
    // SAFETY: the caller says that the strings are there, and that the place can be written.
    unsafe {
        *place = ptr::null_mut();
        let mut at = array;
        while most.is_none_or(|most| made.count < most) {
            let text = trimmed(at, length);
            if most.is_none() && text.is_empty() {
                break;
            }
            if !made.push(as_c(text)) {
                opal_argv_free(made.list);
                return NO_MEMORY;
            }
            at = at.offset(advance as isize);
        }
        *place = made.list;
    }
    0
}

/// Arguments for programs: strings of Fortran up to an empty one.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_argv_blank_f2c(
    array: *const c_char,
    length: c_int,
    advance: c_int,
    place: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the layer gives an array that an empty string ends, and a place.
    unsafe { strings(array, None, length, advance, place) }
}

/// So many strings of Fortran.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_argv_count_f2c(
    array: *const c_char,
    count: c_int,
    length: c_int,
    advance: c_int,
    place: *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the layer gives an array of so many strings, and a place.
    unsafe { strings(array, Some(count), length, advance, place) }
}

/// The arguments of several programs: a column of the array for each.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ompi_fortran_multiple_argvs_f2c(
    programs: c_int,
    array: *const c_char,
    length: c_int,
    place: *mut *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(programs).unwrap_or(0);
    // SAFETY: the layer gives an array with a column for each program, and a place; the list has room for all.
    unsafe {
        let lists: *mut *mut *mut c_char = libc::malloc((count * size_of::<usize>()).max(1)).cast();
        if lists.is_null() {
            return NO_MEMORY;
        }
        for program in 0..count {
            let column = array.add(program * usize::try_from(length).unwrap_or(0));
            let advance = length.wrapping_mul(programs);
            let result = strings(column, None, length, advance, lists.add(program));
            if result != 0 {
                (0..program).for_each(|made| opal_argv_free(*lists.add(made)));
                libc::free(lists.cast());
                return result;
            }
        }
        *place = lists;
    }
    0
}

/// Frees a list of strings.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn opal_argv_free(list: *mut *mut c_char) {
    if list.is_null() {
        return;
    }
    // SAFETY: the list ends with a null; it and its strings come from `malloc`.
    unsafe {
        let mut at = list;
        while !(*at).is_null() {
            libc::free((*at).cast());
            at = at.add(1);
        }
        libc::free(list.cast());
    }
}

/// The library's own state, as the layers read it: it is initialised, no internal errors are known, threads need no locks of the layers'.
macro_rules! facts {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(#[allow(non_upper_case_globals)] // The library's name.
        #[unsafe(no_mangle)]
        static $name: $kind = $value;)*
    };
}

facts! {
    // `OMPI_MPI_STATE_INIT_COMPLETED`.
    ompi_mpi_state: i32 = 2;
    ompi_errcode_intern_lastused: c_int = 0;
    ompi_errcodes_intern: [u8; 0x78] = [0; 0x78];
    opal_uses_threads: bool = false;
    opal_class_init_epoch: c_int = 1;
}

type Action = unsafe extern "C" fn(*mut c_void);

/// `opal_class_t`.
#[repr(C)]
struct Class {
    name: *const c_char,
    parent: *mut Class,
    construct: Option<Action>,
    destruct: Option<Action>,
    initialized: c_int,
    depth: c_int,
    constructors: *mut Option<Action>,
    destructors: *mut Option<Action>,
    bytes: usize,
}

/// `opal_list_item_t`.
#[repr(C)]
struct Item {
    class: *mut c_void,
    references: i32,
    next: *mut Item,
    previous: *mut Item,
    free: i32,
}

/// `opal_list_t`.
#[repr(C)]
struct List {
    class: *mut c_void,
    references: i32,
    sentinel: Item,
    length: usize,
}

/// The empty list of Fortran's data representations; its layer appends to it.
#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static ompi_registered_datareps: Shared<List> = Shared(UnsafeCell::new(List {
    class: ptr::null_mut(),
    references: 1,
    sentinel: Item {
        class: ptr::null_mut(),
        references: 1,
        next: FIRST,
        previous: FIRST,
        free: 1,
    },
    length: 0,
}));

const FIRST: *mut Item = (&raw const ompi_registered_datareps)
    .cast_mut()
    .cast::<u8>()
    .wrapping_add(core::mem::offset_of!(List, sentinel))
    .cast();

unsafe extern "C" fn make_item(item: *mut c_void) {
    let item: *mut Item = item.cast();
    // SAFETY: the layer gives memory for an item.
    unsafe {
        (*item).next = ptr::null_mut();
        (*item).previous = ptr::null_mut();
        (*item).free = 1;
    }
}

/// The class of list items, the parent of the layer's own.
#[allow(non_upper_case_globals)] // The library's name.
#[unsafe(no_mangle)]
static opal_list_item_t_class: Shared<Class> = Shared(UnsafeCell::new(Class {
    name: c"opal_list_item_t".as_ptr(),
    parent: ptr::null_mut(),
    construct: Some(make_item),
    destruct: None,
    initialized: 0,
    depth: 0,
    constructors: ptr::null_mut(),
    destructors: ptr::null_mut(),
    bytes: size_of::<Item>(),
}));

/// Makes a class ready: lists what constructs its objects, from the farthest ancestor on, and what destructs them.
///
/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn opal_class_initialize(class: *mut Class) {
    static ONE_AT_A_TIME: crate::ground::lock::SpinLock<()> =
        crate::ground::lock::SpinLock::new(());
    let _one = ONE_AT_A_TIME.lock();
    // SAFETY: the layer gives a class, which like its ancestors lives as long as the process; the array has room for all functions and two nulls.
    unsafe {
        if (*class).initialized == opal_class_init_epoch {
            return;
        }
        let (mut depth, mut at) = (0, class);
        while let Some(ancestor) = at.as_ref() {
            depth += 1;
            at = ancestor.parent;
        }
        let bytes = 2 * (depth + 1) * size_of::<Option<Action>>();
        let all: *mut Option<Action> = libc::calloc(1, bytes).cast();
        if all.is_null() {
            libc::exit(-1);
        }
        let destructors = all.add(depth + 1);
        let (mut above, mut destructed, mut at) = (0, 0, class);
        while let Some(ancestor) = at.as_ref() {
            if let Some(construct) = ancestor.construct {
                // The nearest one comes last.
                ptr::copy(all, all.add(1), above);
                *all = Some(construct);
                above += 1;
            }
            if let Some(destruct) = ancestor.destruct {
                *destructors.add(destructed) = Some(destruct);
                destructed += 1;
            }
            at = ancestor.parent;
        }
        (*class).depth = depth as c_int;
        (*class).constructors = all;
        (*class).destructors = destructors;
        (*class).initialized = opal_class_init_epoch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_librarys() {
        assert_eq!(size_of::<Class>(), 0x40);
        assert_eq!(size_of::<Item>(), 0x28);
        assert_eq!(size_of::<List>(), 0x40);
    }

    #[test]
    fn strings_lose_their_blanks_and_get_them_back() {
        // SAFETY: the strings have the lengths that are told, and every list is freed once.
        unsafe {
            let mut text = ptr::null_mut();
            let from = b"  two words   ";
            ompi_fortran_string_f2c(from.as_ptr().cast(), from.len() as c_int, &raw mut text);
            assert_eq!(core::ffi::CStr::from_ptr(text), c"two words");
            let mut back = [b'#'; 12];
            ompi_fortran_string_c2f(text, back.as_mut_ptr().cast(), 11);
            assert_eq!(&back, b"two words  #");
            libc::free(text.cast());
        }
    }

    #[test]
    fn lists_of_arguments_end_where_fortran_ends_them() {
        // SAFETY: as above.
        unsafe {
            let (one, both) = (b"-a  -bc     rest", b"-a  -x  -b          ");
            let mut list = ptr::null_mut();
            ompi_fortran_argv_blank_f2c(one.as_ptr().cast(), 4, 4, &raw mut list);
            assert_eq!(core::ffi::CStr::from_ptr(*list.add(1)), c"-bc");
            assert!((*list.add(2)).is_null());
            opal_argv_free(list);
            ompi_fortran_argv_count_f2c(one.as_ptr().cast(), 3, 4, 4, &raw mut list);
            assert_eq!(core::ffi::CStr::from_ptr(*list.add(2)), c"");
            assert!((*list.add(3)).is_null());
            opal_argv_free(list);
            let mut lists = ptr::null_mut();
            ompi_fortran_multiple_argvs_f2c(2, both.as_ptr().cast(), 4, &raw mut lists);
            let [first, second] = [*lists, *lists.add(1)];
            assert_eq!(core::ffi::CStr::from_ptr(*first.add(1)), c"-b");
            assert_eq!(core::ffi::CStr::from_ptr(*second), c"-x");
            assert!((*second.add(1)).is_null());
            [first, second]
                .into_iter()
                .for_each(|it| opal_argv_free(it));
            libc::free(lists.cast());
        }
    }

    #[test]
    fn constructors_run_from_the_farthest_ancestor_on() {
        unsafe extern "C" fn own(_: *mut c_void) {}
        let parent = opal_list_item_t_class.0.get();
        let mut class = Class {
            name: c"own".as_ptr(),
            parent,
            construct: Some(own),
            destruct: Some(own),
            initialized: 0,
            depth: 0,
            constructors: ptr::null_mut(),
            destructors: ptr::null_mut(),
            bytes: 80,
        };
        // SAFETY: the class lives until the test is over; its lists end with a null.
        unsafe {
            opal_class_initialize(&raw mut class);
            let is = |at: usize, wanted: Action| {
                (*class.constructors.add(at)).is_some_and(|it| core::ptr::fn_addr_eq(it, wanted))
            };
            assert!(is(0, make_item) && is(1, own));
            assert!((*class.constructors.add(2)).is_none());
            assert!((*class.destructors).is_some() && (*class.destructors.add(1)).is_none());
            assert_eq!(class.depth, 2);
        }
    }
}
