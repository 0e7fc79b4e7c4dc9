// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::ffi::{c_char, c_void};

use crate::direct::Direct;
use crate::extra::Extra;
use crate::neutral::{Status, Word};

/// The table; filled by the lower half in every launch.
#[repr(C)]
pub struct Dispatch {
    /// `MPIX_Barrier_init(comm, info, request)`.
    pub x_barrier_init: unsafe extern "C" fn(Word, Word, *mut Word) -> i32,
    /// `MPI_Abort(comm, errorcode)`.
    pub abort: unsafe extern "C" fn(Word, i32) -> i32,
    /// `MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)`.
    pub allgather:
        unsafe extern "C" fn(*const c_void, i32, Word, *mut c_void, i32, Word, Word) -> i32,
    /// `MPI_Alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)`.
    pub alltoallw: unsafe extern "C" fn(
        *const c_void,
        *const i32,
        *const i32,
        *const Word,
        *mut c_void,
        *const i32,
        *const i32,
        *const Word,
        Word,
    ) -> i32,
    /// `MPI_Bcast(buffer, count, datatype, root, comm)`.
    pub bcast: unsafe extern "C" fn(*mut c_void, i32, Word, i32, Word) -> i32,
    /// `MPI_Cart_shift(comm, direction, disp, rank_source, rank_dest)`.
    pub cart_shift: unsafe extern "C" fn(Word, i32, i32, *mut i32, *mut i32) -> i32,
    /// `MPI_Comm_get_attr(comm, comm_keyval, attribute_val, flag)`.
    pub comm_get_attr: unsafe extern "C" fn(Word, i32, *mut c_void, *mut i32) -> i32,
    /// `MPI_Comm_split_type(comm, split_type, key, info, newcomm)`.
    pub comm_split_type: unsafe extern "C" fn(Word, i32, i32, Word, *mut Word) -> i32,
    /// `MPI_Dist_graph_create_adjacent(comm_old, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, comm_dist_graph)`.
    pub dist_graph_create_adjacent: unsafe extern "C" fn(
        Word,
        i32,
        *const i32,
        *const i32,
        i32,
        *const i32,
        *const i32,
        Word,
        i32,
        *mut Word,
    ) -> i32,
    /// `MPI_File_open(comm, filename, amode, info, fh)`.
    pub file_open: unsafe extern "C" fn(Word, *const c_char, i32, Word, *mut Word) -> i32,
    /// `MPI_File_read_at(fh, offset, buf, count, datatype, status)`.
    pub file_read_at: unsafe extern "C" fn(Word, i64, *mut c_void, i32, Word, *mut Status) -> i32,
    /// `MPI_Get_count(status, datatype, count)`.
    pub get_count: unsafe extern "C" fn(*const Status, Word, *mut i32) -> i32,
    /// `MPI_Ineighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request)`.
    pub ineighbor_alltoallw: unsafe extern "C" fn(
        *const c_void,
        *const i32,
        *const isize,
        *const Word,
        *mut c_void,
        *const i32,
        *const isize,
        *const Word,
        Word,
        *mut Word,
    ) -> i32,
    /// `MPI_Ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request)`.
    pub ireduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        i32,
        Word,
        Word,
        i32,
        Word,
        *mut Word,
    ) -> i32,
    /// `MPI_Isend(buf, count, datatype, dest, tag, comm, request)`.
    pub isend: unsafe extern "C" fn(*const c_void, i32, Word, i32, i32, Word, *mut Word) -> i32,
    /// `MPI_Op_create(user_fn, commute, op)`.
    pub op_create: unsafe extern "C" fn(*const c_void, i32, *mut Word) -> i32,
    /// `MPI_Rput(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request)`.
    pub rput: unsafe extern "C" fn(
        *const c_void,
        i32,
        Word,
        i32,
        isize,
        i32,
        Word,
        Word,
        *mut Word,
    ) -> i32,
    /// `MPI_Status_set_cancelled(status, flag)`.
    pub status_set_cancelled: unsafe extern "C" fn(*mut Status, i32) -> i32,
    /// `MPI_T_pvar_handle_alloc(pe_session, pvar_index, obj_handle, handle, count)`.
    pub t_pvar_handle_alloc:
        unsafe extern "C" fn(*mut c_void, i32, *mut c_void, *mut *mut c_void, *mut i32) -> i32,
    /// `MPI_Type_create_darray(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype, newtype)`.
    pub type_create_darray: unsafe extern "C" fn(
        i32,
        i32,
        i32,
        *const i32,
        *const i32,
        *const i32,
        *const i32,
        i32,
        Word,
        *mut Word,
    ) -> i32,
    /// `MPI_Type_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype)`.
    pub type_struct:
        unsafe extern "C" fn(i32, *const i32, *const isize, *const Word, *mut Word) -> i32,
    /// `MPI_Waitall(count, array_of_requests, array_of_statuses)`.
    pub waitall: unsafe extern "C" fn(i32, *mut Word, *mut Status) -> i32,
    /// `MPI_Win_create(base, size, disp_unit, info, comm, win)`.
    pub win_create: unsafe extern "C" fn(*mut c_void, isize, i32, Word, Word, *mut Word) -> i32,
    /// What is not MPI's own.
    pub extra: Extra,
    /// The real MPI's own functions, for whoever has its ABI.
    pub direct: Direct,
}
