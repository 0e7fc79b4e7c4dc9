// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;

use stillpoint_wrappers::neutral::{Status, Word};
use super::handles::{HandleSlot, List, neighbours, peers};

use super::found::{absent, found};

/// What the functions are called, in the order in which they are found.
pub const NAMES: [&CStr; 23] = [
    c"MPIX_Barrier_init",
    c"MPI_Abort",
    c"MPI_Allgather",
    c"MPI_Alltoallw",
    c"MPI_Bcast",
    c"MPI_Cart_shift",
    c"MPI_Comm_get_attr",
    c"MPI_Comm_split_type",
    c"MPI_Dist_graph_create_adjacent",
    c"MPI_File_open",
    c"MPI_File_read_at",
    c"MPI_Get_count",
    c"MPI_Ineighbor_alltoallw",
    c"MPI_Ireduce",
    c"MPI_Isend",
    c"MPI_Op_create",
    c"MPI_Rput",
    c"MPI_Status_set_cancelled",
    c"MPI_T_pvar_handle_alloc",
    c"MPI_Type_create_darray",
    c"MPI_Type_struct",
    c"MPI_Waitall",
    c"MPI_Win_create",
];

/// `MPIX_Barrier_init`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPIX_Barrier_init(comm: Word, info: Word, request: *mut Word) -> i32 {
    let Some(function) = found(0) else {
        return absent(0);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_request = HandleSlot::at(request);
        let code = transmute::<*const c_void, unsafe extern "C" fn(i32, i32, *mut i32) -> i32>(function)(
            comm as i32,
            info as i32,
            own_request.place(),
        );
        own_request.give();
        code
    }
}

/// `MPI_Abort`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Abort(comm: Word, errorcode: i32) -> i32 {
    let Some(function) = found(1) else {
        return absent(1);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(i32, i32) -> i32>(function)(
        comm as i32,
        errorcode,
    ) }
}

/// `MPI_Allgather`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Allgather(
    sendbuf: *const c_void,
    sendcount: i32,
    sendtype: Word,
    recvbuf: *mut c_void,
    recvcount: i32,
    recvtype: Word,
    comm: Word,
) -> i32 {
    let Some(function) = found(2) else {
        return absent(2);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(*const c_void, i32, i32, *mut c_void, i32, i32, i32) -> i32>(function)(
        sendbuf,
        sendcount,
        sendtype as i32,
        recvbuf,
        recvcount,
        recvtype as i32,
        comm as i32,
    ) }
}

/// `MPI_Alltoallw`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Alltoallw(
    sendbuf: *const c_void,
    sendcounts: *const i32,
    sdispls: *const i32,
    sendtypes: *const Word,
    recvbuf: *mut c_void,
    recvcounts: *const i32,
    rdispls: *const i32,
    recvtypes: *const Word,
    comm: Word,
) -> i32 {
    let Some(function) = found(3) else {
        return absent(3);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_sendtypes = List::at(sendtypes.cast_mut(), peers(comm));
        let mut own_recvtypes = List::at(recvtypes.cast_mut(), peers(comm));
        transmute::<*const c_void, unsafe extern "C" fn(*const c_void, *const i32, *const i32, *const i32, *mut c_void, *const i32, *const i32, *const i32, i32) -> i32>(function)(
            sendbuf,
            sendcounts,
            sdispls,
            own_sendtypes.place(),
            recvbuf,
            recvcounts,
            rdispls,
            own_recvtypes.place(),
            comm as i32,
        )
    }
}

/// `MPI_Bcast`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Bcast(
    buffer: *mut c_void,
    count: i32,
    datatype: Word,
    root: i32,
    comm: Word,
) -> i32 {
    let Some(function) = found(4) else {
        return absent(4);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(*mut c_void, i32, i32, i32, i32) -> i32>(function)(
        buffer,
        count,
        datatype as i32,
        root,
        comm as i32,
    ) }
}

/// `MPI_Cart_shift`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Cart_shift(
    comm: Word,
    direction: i32,
    disp: i32,
    rank_source: *mut i32,
    rank_dest: *mut i32,
) -> i32 {
    let Some(function) = found(5) else {
        return absent(5);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(i32, i32, i32, *mut i32, *mut i32) -> i32>(function)(
        comm as i32,
        direction,
        disp,
        rank_source,
        rank_dest,
    ) }
}

/// `MPI_Comm_get_attr`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Comm_get_attr(
    comm: Word,
    comm_keyval: i32,
    attribute_val: *mut c_void,
    flag: *mut i32,
) -> i32 {
    let Some(function) = found(6) else {
        return absent(6);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(i32, i32, *mut c_void, *mut i32) -> i32>(function)(
        comm as i32,
        comm_keyval,
        attribute_val,
        flag,
    ) }
}

/// `MPI_Comm_split_type`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Comm_split_type(
    comm: Word,
    split_type: i32,
    key: i32,
    info: Word,
    newcomm: *mut Word,
) -> i32 {
    let Some(function) = found(7) else {
        return absent(7);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_newcomm = HandleSlot::at(newcomm);
        let code = transmute::<*const c_void, unsafe extern "C" fn(i32, i32, i32, i32, *mut i32) -> i32>(function)(
            comm as i32,
            split_type,
            key,
            info as i32,
            own_newcomm.place(),
        );
        own_newcomm.give();
        code
    }
}

/// `MPI_Dist_graph_create_adjacent`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Dist_graph_create_adjacent(
    comm_old: Word,
    indegree: i32,
    sources: *const i32,
    sourceweights: *const i32,
    outdegree: i32,
    destinations: *const i32,
    destweights: *const i32,
    info: Word,
    reorder: i32,
    comm_dist_graph: *mut Word,
) -> i32 {
    let Some(function) = found(8) else {
        return absent(8);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_comm_dist_graph = HandleSlot::at(comm_dist_graph);
        let code = transmute::<*const c_void, unsafe extern "C" fn(i32, i32, *const i32, *const i32, i32, *const i32, *const i32, i32, i32, *mut i32) -> i32>(function)(
            comm_old as i32,
            indegree,
            sources,
            sourceweights,
            outdegree,
            destinations,
            destweights,
            info as i32,
            reorder,
            own_comm_dist_graph.place(),
        );
        own_comm_dist_graph.give();
        code
    }
}

/// `MPI_File_open`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_File_open(
    comm: Word,
    filename: *const c_char,
    amode: i32,
    info: Word,
    fh: *mut Word,
) -> i32 {
    let Some(function) = found(9) else {
        return absent(9);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(i32, *const c_char, i32, i32, *mut Word) -> i32>(function)(
        comm as i32,
        filename,
        amode,
        info as i32,
        fh,
    ) }
}

/// `MPI_File_read_at`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_File_read_at(
    fh: Word,
    offset: i64,
    buf: *mut c_void,
    count: i32,
    datatype: Word,
    status: *mut Status,
) -> i32 {
    let Some(function) = found(10) else {
        return absent(10);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(Word, i64, *mut c_void, i32, i32, *mut Status) -> i32>(function)(
        fh,
        offset,
        buf,
        count,
        datatype as i32,
        status,
    ) }
}

/// `MPI_Get_count`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Get_count(
    status: *const Status,
    datatype: Word,
    count: *mut i32,
) -> i32 {
    let Some(function) = found(11) else {
        return absent(11);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(*const Status, i32, *mut i32) -> i32>(function)(
        status,
        datatype as i32,
        count,
    ) }
}

/// `MPI_Ineighbor_alltoallw`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Ineighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: *const i32,
    sdispls: *const isize,
    sendtypes: *const Word,
    recvbuf: *mut c_void,
    recvcounts: *const i32,
    rdispls: *const isize,
    recvtypes: *const Word,
    comm: Word,
    request: *mut Word,
) -> i32 {
    let Some(function) = found(12) else {
        return absent(12);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_sendtypes = List::at(sendtypes.cast_mut(), neighbours(comm).1);
        let mut own_recvtypes = List::at(recvtypes.cast_mut(), neighbours(comm).0);
        let mut own_request = HandleSlot::at(request);
        let code = transmute::<*const c_void, unsafe extern "C" fn(*const c_void, *const i32, *const isize, *const i32, *mut c_void, *const i32, *const isize, *const i32, i32, *mut i32) -> i32>(function)(
            sendbuf,
            sendcounts,
            sdispls,
            own_sendtypes.place(),
            recvbuf,
            recvcounts,
            rdispls,
            own_recvtypes.place(),
            comm as i32,
            own_request.place(),
        );
        own_request.give();
        code
    }
}

/// `MPI_Ireduce`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Ireduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i32,
    datatype: Word,
    op: Word,
    root: i32,
    comm: Word,
    request: *mut Word,
) -> i32 {
    let Some(function) = found(13) else {
        return absent(13);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_request = HandleSlot::at(request);
        let code = transmute::<*const c_void, unsafe extern "C" fn(*const c_void, *mut c_void, i32, i32, i32, i32, i32, *mut i32) -> i32>(function)(
            sendbuf,
            recvbuf,
            count,
            datatype as i32,
            op as i32,
            root,
            comm as i32,
            own_request.place(),
        );
        own_request.give();
        code
    }
}

/// `MPI_Isend`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Isend(
    buf: *const c_void,
    count: i32,
    datatype: Word,
    dest: i32,
    tag: i32,
    comm: Word,
    request: *mut Word,
) -> i32 {
    let Some(function) = found(14) else {
        return absent(14);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_request = HandleSlot::at(request);
        let code = transmute::<*const c_void, unsafe extern "C" fn(*const c_void, i32, i32, i32, i32, i32, *mut i32) -> i32>(function)(
            buf,
            count,
            datatype as i32,
            dest,
            tag,
            comm as i32,
            own_request.place(),
        );
        own_request.give();
        code
    }
}

/// `MPI_Op_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Op_create(user_fn: *const c_void, commute: i32, op: *mut Word) -> i32 {
    let Some(function) = found(15) else {
        return absent(15);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_op = HandleSlot::at(op);
        let code = transmute::<*const c_void, unsafe extern "C" fn(*const c_void, i32, *mut i32) -> i32>(function)(
            user_fn,
            commute,
            own_op.place(),
        );
        own_op.give();
        code
    }
}

/// `MPI_Rput`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Rput(
    origin_addr: *const c_void,
    origin_count: i32,
    origin_datatype: Word,
    target_rank: i32,
    target_disp: isize,
    target_count: i32,
    target_datatype: Word,
    win: Word,
    request: *mut Word,
) -> i32 {
    let Some(function) = found(16) else {
        return absent(16);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_request = HandleSlot::at(request);
        let code = transmute::<*const c_void, unsafe extern "C" fn(*const c_void, i32, i32, i32, isize, i32, i32, i32, *mut i32) -> i32>(function)(
            origin_addr,
            origin_count,
            origin_datatype as i32,
            target_rank,
            target_disp,
            target_count,
            target_datatype as i32,
            win as i32,
            own_request.place(),
        );
        own_request.give();
        code
    }
}

/// `MPI_Status_set_cancelled`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Status_set_cancelled(status: *mut Status, flag: i32) -> i32 {
    let Some(function) = found(17) else {
        return absent(17);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(
        *mut Status,
        i32,
    ) -> i32>(function)(status, flag) }
}

/// `MPI_T_pvar_handle_alloc`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_T_pvar_handle_alloc(
    pe_session: *mut c_void,
    pvar_index: i32,
    obj_handle: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut i32,
) -> i32 {
    let Some(function) = found(18) else {
        return absent(18);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn(
        *mut c_void,
        i32,
        *mut c_void,
        *mut *mut c_void,
        *mut i32,
    ) -> i32>(function)(pe_session, pvar_index, obj_handle, handle, count) }
}

/// `MPI_Type_create_darray`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Type_create_darray(
    size: i32,
    rank: i32,
    ndims: i32,
    array_of_gsizes: *const i32,
    array_of_distribs: *const i32,
    array_of_dargs: *const i32,
    array_of_psizes: *const i32,
    order: i32,
    oldtype: Word,
    newtype: *mut Word,
) -> i32 {
    let Some(function) = found(19) else {
        return absent(19);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_newtype = HandleSlot::at(newtype);
        let code = transmute::<*const c_void, unsafe extern "C" fn(i32, i32, i32, *const i32, *const i32, *const i32, *const i32, i32, i32, *mut i32) -> i32>(function)(
            size,
            rank,
            ndims,
            array_of_gsizes,
            array_of_distribs,
            array_of_dargs,
            array_of_psizes,
            order,
            oldtype as i32,
            own_newtype.place(),
        );
        own_newtype.give();
        code
    }
}

/// `MPI_Type_struct`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Type_struct(
    count: i32,
    array_of_blocklengths: *const i32,
    array_of_displacements: *const isize,
    array_of_types: *const Word,
    newtype: *mut Word,
) -> i32 {
    let Some(function) = found(20) else {
        return absent(20);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_array_of_types = List::at(array_of_types.cast_mut(), count);
        let mut own_newtype = HandleSlot::at(newtype);
        let code = transmute::<*const c_void, unsafe extern "C" fn(i32, *const i32, *const isize, *const i32, *mut i32) -> i32>(function)(
            count,
            array_of_blocklengths,
            array_of_displacements,
            own_array_of_types.place(),
            own_newtype.place(),
        );
        own_newtype.give();
        code
    }
}

/// `MPI_Waitall`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Waitall(
    count: i32,
    array_of_requests: *mut Word,
    array_of_statuses: *mut Status,
) -> i32 {
    let Some(function) = found(21) else {
        return absent(21);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_array_of_requests = List::at(array_of_requests, count);
        let code = transmute::<*const c_void, unsafe extern "C" fn(i32, *mut i32, *mut Status) -> i32>(function)(
            count,
            own_array_of_requests.place(),
            array_of_statuses,
        );
        own_array_of_requests.give();
        code
    }
}

/// `MPI_Win_create`.
///
/// # Safety
/// As the MPI function.
pub unsafe extern "C" fn MPI_Win_create(
    base: *mut c_void,
    size: isize,
    disp_unit: i32,
    info: Word,
    comm: Word,
    win: *mut Word,
) -> i32 {
    let Some(function) = found(22) else {
        return absent(22);
    };
    // SAFETY: what the library has under this name is a function of this type.
    unsafe {
        let mut own_win = HandleSlot::at(win);
        let code = transmute::<*const c_void, unsafe extern "C" fn(*mut c_void, isize, i32, i32, i32, *mut i32) -> i32>(function)(
            base,
            size,
            disp_unit,
            info as i32,
            comm as i32,
            own_win.place(),
        );
        own_win.give();
        code
    }
}
