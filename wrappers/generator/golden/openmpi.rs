// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::mem::{offset_of, size_of};

use crate::gate::HandleKind;
use crate::neutral;

/// This ABI among those that [`crate::direct::Direct::abi`] may name.
pub const ABI: u64 = u64::from_le_bytes(*b"openmpi4");
/// The library that programs are linked to.
pub const LIBRARY: &str = "libmpi.so.40";
/// Names of its library for Fortran's layers, and data: written by hand.
pub const OF_LAYERS: [&str; 20] = [
    "MPIX_Query_cuda_support",
    "MPI_AINT_ADD_F90",
    "MPI_AINT_DIFF_F90",
    "MPI_COMM_DUP_FN",
    "MPI_COMM_NULL_COPY_FN",
    "MPI_COMM_NULL_DELETE_FN",
    "MPI_CONVERSION_FN_NULL",
    "MPI_DUP_FN",
    "MPI_F_STATUSES_IGNORE",
    "MPI_F_STATUS_IGNORE",
    "MPI_NULL_COPY_FN",
    "MPI_NULL_DELETE_FN",
    "MPI_TYPE_DUP_FN",
    "MPI_TYPE_NULL_COPY_FN",
    "MPI_TYPE_NULL_DELETE_FN",
    "MPI_WIN_DUP_FN",
    "MPI_WIN_NULL_COPY_FN",
    "MPI_WIN_NULL_DELETE_FN",
    "MPI_WTICK_F90",
    "MPI_WTIME_F90",
];
/// What later releases of it export: carried, or refused.
pub const LATER: [&str; 3] = [
    "MPI_Comm_idup_with_info",
    "MPI_Allgather_init",
    "MPIX_Comm_ack_failed",
];
/// What it exports to its Fortran and C++ layers, and the upper half in its place.
pub const INTERNAL: [&str; 14] = [
    "ompi_attr_create_keyval",
    "ompi_attr_create_keyval_fint",
    "ompi_attr_create_keyval_aint",
    "ompi_attr_set_fint",
    "ompi_attr_set_aint",
    "ompi_attr_get_fint",
    "ompi_attr_get_aint",
    "ompi_errhandler_create",
    "ompi_errhandler_invoke",
    "ompi_mpi_errors_are_fatal_comm_handler",
    "ompi_datatype_match_size",
    "ompi_op_set_cxx_callback",
    "ompi_mpi_param_check",
    "ompi_status_empty",
];

/// What `MPI_Get_version` says to programs that were built for it
pub const VERSION: i32 = 3;
/// `MPI_SUBVERSION`.
pub const SUBVERSION: i32 = 1;
/// `MPI_MAX_DATAREP_STRING`.
pub const MAX_DATAREP_STRING: usize = 128;
/// `MPI_MAX_ERROR_STRING`.
pub const MAX_ERROR_STRING: usize = 256;
/// `MPI_MAX_INFO_KEY`.
pub const MAX_INFO_KEY: usize = 36;
/// `MPI_MAX_INFO_VAL`.
pub const MAX_INFO_VAL: usize = 256;
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
pub const MAX_LIBRARY_VERSION_STRING: usize = 256;
/// `MPI_MAX_OBJECT_NAME`.
pub const MAX_OBJECT_NAME: usize = 64;
/// `MPI_MAX_PORT_NAME`.
pub const MAX_PORT_NAME: usize = 1024;
/// `MPI_MAX_PROCESSOR_NAME`.
pub const MAX_PROCESSOR_NAME: usize = 256;

/// `MPI_Status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub error: i32,
    /// `_cancelled`
    pub cancelled: i32,
    /// `_ucount`
    pub bytes: usize,
}

const _: () = assert!(size_of::<Status>() == 24);
const _: () = assert!(offset_of!(Status, source) == 0);
const _: () = assert!(offset_of!(Status, tag) == 4);
const _: () = assert!(offset_of!(Status, error) == 8);
const _: () = assert!(offset_of!(Status, cancelled) == 12);
const _: () = assert!(offset_of!(Status, bytes) == 16);

impl Status {
    /// The status in the neutral form.
    #[inline(always)]
    pub fn to_neutral(self) -> neutral::Status {
        let mut status = neutral::Status {
            source: rank_to_neutral(self.source),
            tag: tag_to_neutral(self.tag),
            error: error_to_neutral(self.error),
            internal: [self.cancelled, 0, 0, 0, 0],
        };
        status.set_bytes(self.bytes as u64);
        status
    }

    /// The form that a neutral status has here.
    #[inline(always)]
    pub fn from_neutral(status: &neutral::Status) -> Self {
        Self {
            source: rank_from_neutral(status.source),
            tag: tag_from_neutral(status.tag),
            error: error_from_neutral(status.error),
            cancelled: status.internal[0],
            bytes: status.bytes() as usize,
        }
    }
}

/// `MPI_SUCCESS`.
pub const SUCCESS: i32 = 0;
/// `MPI_ERR_IN_STATUS`.
pub const ERR_IN_STATUS: i32 = 18;
/// `MPI_ERR_PENDING`.
pub const ERR_PENDING: i32 = 19;
/// `MPI_ERR_WIN`.
pub const ERR_WIN: i32 = 53;
/// `MPI_UNDEFINED`.
pub const UNDEFINED: i32 = -32766;
/// `MPI_ROOT`.
pub const ROOT: i32 = -4;
/// `MPI_PROC_NULL`.
pub const PROC_NULL: i32 = -2;
/// `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i32 = -1;
/// `MPI_MODE_NOCHECK`.
pub const MODE_NOCHECK: i32 = 1;
/// `MPI_MODE_NOPRECEDE`.
pub const MODE_NOPRECEDE: i32 = 2;
/// `MPI_MODE_NOPUT`.
pub const MODE_NOPUT: i32 = 4;
/// `MPI_MODE_NOSTORE`.
pub const MODE_NOSTORE: i32 = 8;
/// `MPI_MODE_NOSUCCEED`.
pub const MODE_NOSUCCEED: i32 = 16;
/// `MPI_THREAD_SINGLE`.
pub const THREAD_SINGLE: i32 = 0;
/// `MPI_THREAD_FUNNELED`.
pub const THREAD_FUNNELED: i32 = 1;
/// `MPI_THREAD_SERIALIZED`.
pub const THREAD_SERIALIZED: i32 = 2;
/// `MPI_THREAD_MULTIPLE`.
pub const THREAD_MULTIPLE: i32 = 3;
/// `MPI_DISPLACEMENT_CURRENT`.
pub const DISPLACEMENT_CURRENT: i64 = -54278278;
/// `MPI_ERR_LASTCODE`.
pub const ERR_LASTCODE: i32 = 92;

/// What is added to a value without a meaning, so that it keeps having none.
const MEANINGLESS: i32 = 0x2000_0000;

/// Flags of the set `assertion`, converted bit by bit.
pub const fn assertion_to_neutral(value: i32) -> i32 {
    let mut rest = value;
    let mut result = 0;
    if value & 1 != 0 { rest &= !1; result |= 1024; } // MPI_MODE_NOCHECK
    if value & 2 != 0 { rest &= !2; result |= 2048; } // MPI_MODE_NOPRECEDE
    if value & 4 != 0 { rest &= !4; result |= 4096; } // MPI_MODE_NOPUT
    if value & 8 != 0 { rest &= !8; result |= 8192; } // MPI_MODE_NOSTORE
    if value & 16 != 0 { rest &= !16; result |= 16384; } // MPI_MODE_NOSUCCEED
    if rest != 0 { result |= MEANINGLESS; }
    result
}

/// Flags of the set `assertion`, converted bit by bit.
pub const fn assertion_from_neutral(value: i32) -> i32 {
    let mut rest = value;
    let mut result = 0;
    if value & 1024 != 0 { rest &= !1024; result |= 1; } // MPI_MODE_NOCHECK
    if value & 2048 != 0 { rest &= !2048; result |= 2; } // MPI_MODE_NOPRECEDE
    if value & 4096 != 0 { rest &= !4096; result |= 4; } // MPI_MODE_NOPUT
    if value & 8192 != 0 { rest &= !8192; result |= 8; } // MPI_MODE_NOSTORE
    if value & 16384 != 0 { rest &= !16384; result |= 16; } // MPI_MODE_NOSUCCEED
    if rest != 0 { result |= MEANINGLESS; }
    result
}

/// A value of the set `displacement`, made neutral.
pub const fn displacement_to_neutral(value: i64) -> i64 {
    match value {
        -54278278 => -1, // MPI_DISPLACEMENT_CURRENT
        other => other,
    }
}

/// The neutral value of the set `displacement`, as it is here.
pub const fn displacement_from_neutral(value: i64) -> i64 {
    match value {
        -1 => -54278278, // MPI_DISPLACEMENT_CURRENT
        other => other,
    }
}

/// `MPI_ERR_LASTCODE` of the standard's ABI.
pub const NEUTRAL_ERR_LASTCODE: i32 = 16383;

/// Constants of the set `error`: (standard ABI, here).
const ERROR: [(i32, i32); 4] = [
    (0, 0), // MPI_SUCCESS
    (19, 18), // MPI_ERR_IN_STATUS
    (18, 19), // MPI_ERR_PENDING
    (56, 53), // MPI_ERR_WIN
];

/// A value of the set `error`, made neutral.
#[inline(always)]
pub const fn error_to_neutral(value: i32) -> i32 {
    if value == 0 {
        0
    } else {
        nonzero_error(value, true)
    }
}

/// The neutral value of the set `error`, as it is here.
#[inline(always)]
pub const fn error_from_neutral(value: i32) -> i32 {
    if value == 0 {
        0
    } else {
        nonzero_error(value, false)
    }
}

const fn nonzero_error(value: i32, to_neutral: bool) -> i32 {
    let mut index = 0;
    while index < ERROR.len() {
        let (standard, own) = ERROR[index];
        if to_neutral && own == value {
            return standard;
        }
        if !to_neutral && standard == value {
            return own;
        }
        index += 1;
    }
    let added = NEUTRAL_ERR_LASTCODE - ERR_LASTCODE;
    match (to_neutral, value) {
        (true, value) if value > ERR_LASTCODE => value.wrapping_add(added),
        (false, value) if value > NEUTRAL_ERR_LASTCODE => value.wrapping_sub(added),
        // Neither predefined nor added. Both ways the same, so that nothing is lost.
        (_, value) => value,
    }
}

/// A value of the set `rank`, made neutral.
#[inline(always)]
pub const fn rank_to_neutral(value: i32) -> i32 {
    match value {
        -2 => -3, // MPI_PROC_NULL
        -3 => -2, // names nothing
        other => other,
    }
}

/// A value of the set `rank`, as it is here.
#[inline(always)]
pub const fn rank_from_neutral(value: i32) -> i32 {
    match value {
        -2 => -3, // names nothing
        -3 => -2, // MPI_PROC_NULL
        other => other,
    }
}

/// A value of the set `threads`, made neutral.
pub const fn threads_to_neutral(value: i32) -> i32 {
    match value {
        0 => 0, // MPI_THREAD_SINGLE
        1 => 1024, // MPI_THREAD_FUNNELED
        2 => 2048, // MPI_THREAD_SERIALIZED
        3 => 4096, // MPI_THREAD_MULTIPLE
        other => other.wrapping_add(MEANINGLESS),
    }
}

/// The neutral value of the set `threads`, as it is here.
pub const fn threads_from_neutral(value: i32) -> i32 {
    match value {
        0 => 0, // MPI_THREAD_SINGLE
        1024 => 1, // MPI_THREAD_FUNNELED
        2048 => 2, // MPI_THREAD_SERIALIZED
        4096 => 3, // MPI_THREAD_MULTIPLE
        other => other.wrapping_sub(MEANINGLESS),
    }
}

/// `MPI_BOTTOM`.
pub const BOTTOM: usize = 0;
/// `MPI_BOTTOM` of the standard's ABI.
pub const NEUTRAL_BOTTOM: usize = 0;
/// `MPI_IN_PLACE`.
pub const IN_PLACE: usize = 1;
/// `MPI_IN_PLACE` of the standard's ABI.
pub const NEUTRAL_IN_PLACE: usize = 1;
/// `MPI_STATUS_IGNORE`.
pub const STATUS_IGNORE: usize = 0;
/// `MPI_STATUS_IGNORE` of the standard's ABI.
pub const NEUTRAL_STATUS_IGNORE: usize = 0;
/// `MPI_STATUSES_IGNORE`.
pub const STATUSES_IGNORE: usize = 0;
/// `MPI_STATUSES_IGNORE` of the standard's ABI.
pub const NEUTRAL_STATUSES_IGNORE: usize = 0;
/// `MPI_UNWEIGHTED`.
pub const UNWEIGHTED: usize = 2;
/// `MPI_UNWEIGHTED` of the standard's ABI.
pub const NEUTRAL_UNWEIGHTED: usize = 10;
/// `MPI_WEIGHTS_EMPTY`.
pub const WEIGHTS_EMPTY: usize = 3;
/// `MPI_WEIGHTS_EMPTY` of the standard's ABI.
pub const NEUTRAL_WEIGHTS_EMPTY: usize = 11;

/// A pointer of the set `buffer`, converted to the neutral form.
#[inline]
pub fn buffer_to_neutral<T>(pointer: *const T) -> *const T {
    pointer
}

/// A pointer of the set `buffer`, converted from the neutral form.
#[inline]
pub fn buffer_from_neutral<T>(pointer: *const T) -> *const T {
    pointer
}

/// A pointer of the set `status`, converted to the neutral form.
#[inline]
pub fn status_to_neutral<T>(pointer: *const T) -> *const T {
    pointer
}

/// A pointer of the set `status`, converted from the neutral form.
#[inline]
pub fn status_from_neutral<T>(pointer: *const T) -> *const T {
    pointer
}

/// A pointer of the set `weights`, converted to the neutral form.
#[inline]
pub fn weights_to_neutral<T>(pointer: *const T) -> *const T {
    match pointer.addr() {
        UNWEIGHTED => pointer.with_addr(NEUTRAL_UNWEIGHTED),
        WEIGHTS_EMPTY => pointer.with_addr(NEUTRAL_WEIGHTS_EMPTY),
        _ => pointer,
    }
}

/// A pointer of the set `weights`, converted from the neutral form.
#[inline]
pub fn weights_from_neutral<T>(pointer: *const T) -> *const T {
    match pointer.addr() {
        NEUTRAL_UNWEIGHTED => pointer.with_addr(UNWEIGHTED),
        NEUTRAL_WEIGHTS_EMPTY => pointer.with_addr(WEIGHTS_EMPTY),
        _ => pointer,
    }
}

/// Predefined handles, sorted by kind and standard-ABI value.
pub const PREDEFINED: [Predefined; 7] = [
    Predefined { kind: HandleKind::Communicator, standard: 256, name: c"MPI_COMM_NULL", symbol: c"ompi_mpi_comm_null", bytes: 512, fortran: 2 },
    Predefined { kind: HandleKind::Communicator, standard: 257, name: c"MPI_COMM_WORLD", symbol: c"ompi_mpi_comm_world", bytes: 512, fortran: 0 },
    Predefined { kind: HandleKind::Communicator, standard: 258, name: c"MPI_COMM_SELF", symbol: c"ompi_mpi_comm_self", bytes: 512, fortran: 1 },
    Predefined { kind: HandleKind::Errhandler, standard: 320, name: c"MPI_ERRHANDLER_NULL", symbol: c"ompi_mpi_errhandler_null", bytes: 1024, fortran: 0 },
    Predefined { kind: HandleKind::Errhandler, standard: 321, name: c"MPI_ERRORS_ARE_FATAL", symbol: c"ompi_mpi_errors_are_fatal", bytes: 1024, fortran: 1 },
    Predefined { kind: HandleKind::Errhandler, standard: 323, name: c"MPI_ERRORS_RETURN", symbol: c"ompi_mpi_errors_return", bytes: 1024, fortran: 2 },
    Predefined { kind: HandleKind::Errhandler, standard: 1040, name: c"MPI_ERRORS_THROW_EXCEPTIONS", symbol: c"ompi_mpi_errors_throw_exceptions", bytes: 1024, fortran: 3 },
];

/// From this number on, handles have numbers of Fortran's: predefined ones too.
pub const FIRST_NUMBER: i32 = 0;

/// The first number that no predefined handle of a kind (a `HandleKind`) has in Fortran.
pub const fn first_free_number(kind: u16) -> i32 {
    match kind {
        k if k == HandleKind::Communicator as u16 => 3,
        k if k == HandleKind::Errhandler as u16 => 4,
        _ => 1,
    }
}

/// The null handle of a kind whose handles are numbers of 32 bits.
pub const fn narrow(_kind: HandleKind) -> Option<i32> {
    None
}

/// Whether a null pointer among an attribute's functions stands for one that does nothing.
pub const NULL_FUNCTIONS: bool = false;
/// What stands for a function that copies an attribute as it is, where that is none.
pub const DUPLICATES: Option<usize> = None;

/// What its Fortran and C++ layers know of its objects and internal functions.
pub mod internals {
    /// Where a group has its Fortran number, read without asking for one: `mpi_group_incl` ...
    pub const GROUP_NUMBER: usize = 0x018;
    /// Where a request has its Fortran number: `mpi_wait` ...
    pub const REQUEST_NUMBER: usize = 0x068;
    /// Where a generalized request says whose its functions are (a byte: 1 C's, 0 Fortran's): `mpi_grequest_start`.
    pub const GREQUEST_IN_C: usize = 0x0c0;
    /// Where an error handler of the C++ bindings says what calls its function: `Create_errhandler`.
    pub const HANDLER_CXX_DISPATCH: usize = 0x078;
    /// Where an operator has its flags: `mpi_op_create`.
    pub const OPERATOR_FLAGS: usize = 0x054;
    /// The flag of an operator whose function takes Fortran's arguments.
    pub const OPERATOR_IS_FORTRAN: u32 = 2;
    /// Where a communicator has its flags: `mpi_alltoallw`.
    pub const COMMUNICATOR_FLAGS: usize = 0x0e8;
    /// The flag of an intercommunicator.
    pub const COMMUNICATOR_IS_INTER: u32 = 1;
    /// Where a communicator has its local group: `mpi_alltoallw`.
    pub const LOCAL_GROUP: usize = 0x0f8;
    /// Where a communicator has its remote group: `mpi_alltoallw`.
    pub const REMOTE_GROUP: usize = 0x100;
    /// Where a group has its size: `mpi_alltoallw`.
    pub const GROUP_SIZE: usize = 0x010;
    /// Where a communicator has its attribute table, given to `ompi_attr_*`: `mpi_comm_get_attr` ...
    pub const COMMUNICATOR_ATTRIBUTES: usize = 0x110;
    /// The same of a datatype.
    pub const DATATYPE_ATTRIBUTES: usize = 0x0d0;
    /// The same of a window.
    pub const WINDOW_ATTRIBUTES: usize = 0x0f0;
    /// Up to where no layer touches an object but for what is told above.
    pub const OBJECT_HEAD: usize = 80;
    /// Bytes of the largest object that something is told of above.
    pub const OBJECT_BYTES: usize = 512;
    /// `ompi_attribute_type_t`: of a datatype; else of a communicator.
    pub const ATTRIBUTE_OF_DATATYPE: i32 = 2;
    /// `ompi_attribute_type_t`: of a window.
    pub const ATTRIBUTE_OF_WINDOW: i32 = 3;
    /// `ompi_errhandler_type_t`: of a window; else of a communicator.
    pub const HANDLER_OF_WINDOW: i32 = 2;
    /// `ompi_errhandler_type_t`: of a file.
    pub const HANDLER_OF_FILE: i32 = 3;
    /// `ompi_errhandler_lang_t`: C++'s; else C's.
    pub const HANDLER_IN_CXX: i32 = 1;
    /// `ompi_errhandler_lang_t`: Fortran's.
    pub const HANDLER_IN_FORTRAN: i32 = 2;
    /// `OMPI_DATATYPE_FLAG_DATA_INT`.
    pub const DATA_INTEGER: u16 = 0x1000;
    /// `OMPI_DATATYPE_FLAG_DATA_FLOAT`; both flags: complex.
    pub const DATA_REAL: u16 = 0x2000;
}
