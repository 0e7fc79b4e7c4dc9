// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use mpi_sys as ffi;
use stillpoint_wrappers::openmpi as abi;

use core::mem::size_of;

/// Names, and their values here and there.
#[allow(clippy::unnecessary_cast, reason = "one of them is as wide")]
pub const NUMBERS: [(&str, i64, i64); 29] = [
    ("MPI_VERSION", abi::VERSION as i64, ffi::MPI_VERSION as i64),
    ("MPI_SUBVERSION", abi::SUBVERSION as i64, ffi::MPI_SUBVERSION as i64),
    ("MPI_MAX_DATAREP_STRING", abi::MAX_DATAREP_STRING as i64, ffi::MPI_MAX_DATAREP_STRING as i64),
    ("MPI_MAX_ERROR_STRING", abi::MAX_ERROR_STRING as i64, ffi::MPI_MAX_ERROR_STRING as i64),
    ("MPI_MAX_INFO_KEY", abi::MAX_INFO_KEY as i64, ffi::MPI_MAX_INFO_KEY as i64),
    ("MPI_MAX_INFO_VAL", abi::MAX_INFO_VAL as i64, ffi::MPI_MAX_INFO_VAL as i64),
    (
        "MPI_MAX_LIBRARY_VERSION_STRING",
        abi::MAX_LIBRARY_VERSION_STRING as i64,
        ffi::MPI_MAX_LIBRARY_VERSION_STRING as i64,
    ),
    ("MPI_MAX_OBJECT_NAME", abi::MAX_OBJECT_NAME as i64, ffi::MPI_MAX_OBJECT_NAME as i64),
    ("MPI_MAX_PORT_NAME", abi::MAX_PORT_NAME as i64, ffi::MPI_MAX_PORT_NAME as i64),
    ("MPI_MAX_PROCESSOR_NAME", abi::MAX_PROCESSOR_NAME as i64, ffi::MPI_MAX_PROCESSOR_NAME as i64),
    ("MPI_SUCCESS", abi::SUCCESS as i64, ffi::MPI_SUCCESS as i64),
    ("MPI_ERR_IN_STATUS", abi::ERR_IN_STATUS as i64, ffi::MPI_ERR_IN_STATUS as i64),
    ("MPI_ERR_PENDING", abi::ERR_PENDING as i64, ffi::MPI_ERR_PENDING as i64),
    ("MPI_ERR_WIN", abi::ERR_WIN as i64, ffi::MPI_ERR_WIN as i64),
    ("MPI_UNDEFINED", abi::UNDEFINED as i64, ffi::MPI_UNDEFINED as i64),
    ("MPI_ROOT", abi::ROOT as i64, ffi::MPI_ROOT as i64),
    ("MPI_PROC_NULL", abi::PROC_NULL as i64, ffi::MPI_PROC_NULL as i64),
    ("MPI_ANY_SOURCE", abi::ANY_SOURCE as i64, ffi::MPI_ANY_SOURCE as i64),
    ("MPI_MODE_NOCHECK", abi::MODE_NOCHECK as i64, ffi::MPI_MODE_NOCHECK as i64),
    ("MPI_MODE_NOPRECEDE", abi::MODE_NOPRECEDE as i64, ffi::MPI_MODE_NOPRECEDE as i64),
    ("MPI_MODE_NOPUT", abi::MODE_NOPUT as i64, ffi::MPI_MODE_NOPUT as i64),
    ("MPI_MODE_NOSTORE", abi::MODE_NOSTORE as i64, ffi::MPI_MODE_NOSTORE as i64),
    ("MPI_MODE_NOSUCCEED", abi::MODE_NOSUCCEED as i64, ffi::MPI_MODE_NOSUCCEED as i64),
    ("MPI_THREAD_SINGLE", abi::THREAD_SINGLE as i64, ffi::MPI_THREAD_SINGLE as i64),
    ("MPI_THREAD_FUNNELED", abi::THREAD_FUNNELED as i64, ffi::MPI_THREAD_FUNNELED as i64),
    ("MPI_THREAD_SERIALIZED", abi::THREAD_SERIALIZED as i64, ffi::MPI_THREAD_SERIALIZED as i64),
    ("MPI_THREAD_MULTIPLE", abi::THREAD_MULTIPLE as i64, ffi::MPI_THREAD_MULTIPLE as i64),
    (
        "MPI_DISPLACEMENT_CURRENT",
        abi::DISPLACEMENT_CURRENT as i64,
        ffi::MPI_DISPLACEMENT_CURRENT as i64,
    ),
    ("MPI_ERR_LASTCODE", abi::ERR_LASTCODE as i64, ffi::MPI_ERR_LASTCODE as i64),
];

/// Types, and their sizes here and there.
pub const SIZES: [(&str, usize, usize); 13] = [
    ("MPI_Comm", size_of::<*mut ()>(), size_of::<ffi::MPI_Comm>()),
    ("MPI_Group", size_of::<*mut ()>(), size_of::<ffi::MPI_Group>()),
    ("MPI_Datatype", size_of::<*mut ()>(), size_of::<ffi::MPI_Datatype>()),
    ("MPI_Op", size_of::<*mut ()>(), size_of::<ffi::MPI_Op>()),
    ("MPI_Request", size_of::<*mut ()>(), size_of::<ffi::MPI_Request>()),
    ("MPI_Errhandler", size_of::<*mut ()>(), size_of::<ffi::MPI_Errhandler>()),
    ("MPI_Info", size_of::<*mut ()>(), size_of::<ffi::MPI_Info>()),
    ("MPI_Message", size_of::<*mut ()>(), size_of::<ffi::MPI_Message>()),
    ("MPI_Win", size_of::<*mut ()>(), size_of::<ffi::MPI_Win>()),
    ("MPI_File", size_of::<*mut ()>(), size_of::<ffi::MPI_File>()),
    ("MPI_Aint", size_of::<isize>(), size_of::<ffi::MPI_Aint>()),
    ("MPI_Count", size_of::<i64>(), size_of::<ffi::MPI_Count>()),
    ("MPI_Offset", size_of::<i64>(), size_of::<ffi::MPI_Offset>()),
];
