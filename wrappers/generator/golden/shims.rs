// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::extra::Extra;

use super::attributes;

/// The table, with what is not MPI's own.
pub fn dispatch(extra: Extra) -> Dispatch {
    Dispatch {
        abort: environment::abort,
        get_count: local::get_count,
        status_set_cancelled: local::status_set_cancelled,
        cart_shift: query::cart_shift,
        isend: point_to_point::isend,
        waitall: completion::waitall,
        allgather: collective::allgather,
        alltoallw: collective::alltoallw,
        bcast: collective::bcast,
        ineighbor_alltoallw: nonblocking_collective::ineighbor_alltoallw,
        ireduce: nonblocking_collective::ireduce,
        x_barrier_init: persistent_collective::x_barrier_init,
        comm_get_attr: attributes::comm_get_attr,
        comm_split_type: object::comm_split_type,
        dist_graph_create_adjacent: object::dist_graph_create_adjacent,
        op_create: object::op_create,
        type_create_darray: object::type_create_darray,
        type_struct: object::type_struct,
        rput: one_sided::rput,
        win_create: one_sided::win_create,
        file_open: file::file_open,
        file_read_at: file::file_read_at,
        t_pvar_handle_alloc: tool::t_pvar_handle_alloc,
        extra,
        direct: direct::direct(),
    }
}

mod environment {
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn abort(comm: Word, errorcode: i32) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Abort(convert::handle(comm), abi::error_from_neutral(errorcode))
            )
        }
    }
}

mod local {
    use stillpoint_wrappers::neutral::{Status, Word};
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn get_count(
        status: *const Status,
        datatype: Word,
        count: *mut i32,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            let own_status = convert::given_status(status);
            library::error_to_neutral(
                ffi::MPI_Get_count(own_status.given(), convert::handle(datatype), count)
            )
        }
    }

    pub unsafe extern "C" fn status_set_cancelled(status: *mut Status, flag: i32) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            let mut own_status = convert::given_status(status);
            let code = ffi::MPI_Status_set_cancelled(own_status.place(), flag);
            own_status.give(status);
            library::error_to_neutral(code)
        }
    }
}

mod query {
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn cart_shift(
        comm: Word,
        direction: i32,
        disp: i32,
        rank_source: *mut i32,
        rank_dest: *mut i32,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            let mut own_rank_source = convert::integer(rank_source, abi::rank_from_neutral);
            let mut own_rank_dest = convert::integer(rank_dest, abi::rank_from_neutral);
            let code = ffi::MPI_Cart_shift(
                convert::handle(comm),
                direction,
                disp,
                own_rank_source.place(),
                own_rank_dest.place(),
            );
            own_rank_source.give(rank_source, abi::rank_to_neutral);
            own_rank_dest.give(rank_dest, abi::rank_to_neutral);
            library::error_to_neutral(code)
        }
    }
}

mod point_to_point {
    use core::ffi::c_void;
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn isend(
        buf: *const c_void,
        count: i32,
        datatype: Word,
        dest: i32,
        tag: i32,
        comm: Word,
        request: *mut Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Isend(
                    buf as _,
                    count,
                    convert::handle(datatype),
                    abi::rank_from_neutral(dest),
                    abi::tag_from_neutral(tag),
                    convert::handle(comm),
                    request as _,
                )
            )
        }
    }
}

mod completion {
    use stillpoint_wrappers::neutral::{Status, Word};
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn waitall(
        count: i32,
        array_of_requests: *mut Word,
        array_of_statuses: *mut Status,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            let mut own_array_of_statuses = convert::statuses(array_of_statuses, count);
            let code = ffi::MPI_Waitall(
                count,
                array_of_requests as _,
                own_array_of_statuses.place(),
            );
            own_array_of_statuses.give(array_of_statuses);
            library::error_to_neutral(code)
        }
    }
}

mod collective {
    use core::ffi::c_void;
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn allgather(
        sendbuf: *const c_void,
        sendcount: i32,
        sendtype: Word,
        recvbuf: *mut c_void,
        recvcount: i32,
        recvtype: Word,
        comm: Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Allgather(
                    sendbuf as _,
                    sendcount,
                    convert::handle(sendtype),
                    recvbuf as _,
                    recvcount,
                    convert::handle(recvtype),
                    convert::handle(comm),
                )
            )
        }
    }

    pub unsafe extern "C" fn alltoallw(
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
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Alltoallw(
                    sendbuf as _,
                    sendcounts,
                    sdispls,
                    sendtypes as _,
                    recvbuf as _,
                    recvcounts,
                    rdispls,
                    recvtypes as _,
                    convert::handle(comm),
                )
            )
        }
    }

    pub unsafe extern "C" fn bcast(
        buffer: *mut c_void,
        count: i32,
        datatype: Word,
        root: i32,
        comm: Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Bcast(
                    buffer as _,
                    count,
                    convert::handle(datatype),
                    abi::rank_from_neutral(root),
                    convert::handle(comm),
                )
            )
        }
    }
}

mod nonblocking_collective {
    use core::ffi::c_void;
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn ineighbor_alltoallw(
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
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Ineighbor_alltoallw(
                    sendbuf as _,
                    sendcounts,
                    sdispls,
                    sendtypes as _,
                    recvbuf as _,
                    recvcounts,
                    rdispls,
                    recvtypes as _,
                    convert::handle(comm),
                    request as _,
                )
            )
        }
    }

    pub unsafe extern "C" fn ireduce(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i32,
        datatype: Word,
        op: Word,
        root: i32,
        comm: Word,
        request: *mut Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Ireduce(
                    sendbuf as _,
                    recvbuf as _,
                    count,
                    convert::handle(datatype),
                    convert::handle(op),
                    abi::rank_from_neutral(root),
                    convert::handle(comm),
                    request as _,
                )
            )
        }
    }
}

mod persistent_collective {
    use stillpoint_wrappers::neutral::Word;
    use crate::mpi::{convert, library};
    use crate::mpi::library::missing;

    pub unsafe extern "C" fn x_barrier_init(comm: Word, info: Word, request: *mut Word) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                missing::MPIX_Barrier_init(
                    convert::handle(comm),
                    convert::handle(info),
                    request as _,
                )
            )
        }
    }
}

mod object {
    use core::ffi::c_void;
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::{ffi, missing};

    pub unsafe extern "C" fn comm_split_type(
        comm: Word,
        split_type: i32,
        key: i32,
        info: Word,
        newcomm: *mut Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Comm_split_type(
                    convert::handle(comm),
                    abi::split_from_neutral(split_type),
                    key,
                    convert::handle(info),
                    newcomm as _,
                )
            )
        }
    }

    pub unsafe extern "C" fn dist_graph_create_adjacent(
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
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Dist_graph_create_adjacent(
                    convert::handle(comm_old),
                    indegree,
                    sources,
                    library::weights_from_neutral(sourceweights),
                    outdegree,
                    destinations,
                    library::weights_from_neutral(destweights),
                    convert::handle(info),
                    reorder,
                    comm_dist_graph as _,
                )
            )
        }
    }

    pub unsafe extern "C" fn op_create(user_fn: *const c_void, commute: i32, op: *mut Word) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Op_create(convert::function(user_fn), commute, op as _)
            )
        }
    }

    pub unsafe extern "C" fn type_create_darray(
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
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            let own_array_of_distribs = convert::integers(
                array_of_distribs,
                ndims,
                abi::distribution_from_neutral,
            );
            let own_array_of_dargs = convert::integers(
                array_of_dargs,
                ndims,
                abi::darg_from_neutral,
            );
            library::error_to_neutral(
                ffi::MPI_Type_create_darray(
                    size,
                    abi::rank_from_neutral(rank),
                    ndims,
                    array_of_gsizes,
                    own_array_of_distribs.given(),
                    own_array_of_dargs.given(),
                    array_of_psizes,
                    abi::order_from_neutral(order),
                    convert::handle(oldtype),
                    newtype as _,
                )
            )
        }
    }

    pub unsafe extern "C" fn type_struct(
        count: i32,
        array_of_blocklengths: *const i32,
        array_of_displacements: *const isize,
        array_of_types: *const Word,
        newtype: *mut Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                missing::MPI_Type_struct(
                    count,
                    array_of_blocklengths,
                    array_of_displacements,
                    array_of_types as _,
                    newtype as _,
                )
            )
        }
    }
}

mod one_sided {
    use core::ffi::c_void;
    use stillpoint_wrappers::neutral::Word;
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn rput(
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
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Rput(
                    origin_addr as _,
                    origin_count,
                    convert::handle(origin_datatype),
                    abi::rank_from_neutral(target_rank),
                    target_disp,
                    target_count,
                    convert::handle(target_datatype),
                    convert::handle(win),
                    request as _,
                )
            )
        }
    }

    pub unsafe extern "C" fn win_create(
        base: *mut c_void,
        size: isize,
        disp_unit: i32,
        info: Word,
        comm: Word,
        win: *mut Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_Win_create(
                    base as _,
                    size,
                    disp_unit,
                    convert::handle(info),
                    convert::handle(comm),
                    win as _,
                )
            )
        }
    }
}

mod file {
    use core::ffi::{c_char, c_void};
    use stillpoint_wrappers::neutral::{Status, Word};
    use stillpoint_wrappers::openmpi as abi;
    use crate::mpi::{convert, library};
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn file_open(
        comm: Word,
        filename: *const c_char,
        amode: i32,
        info: Word,
        fh: *mut Word,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_File_open(
                    convert::handle(comm),
                    filename,
                    abi::mode_from_neutral(amode),
                    convert::handle(info),
                    fh as _,
                )
            )
        }
    }

    pub unsafe extern "C" fn file_read_at(
        fh: Word,
        offset: i64,
        buf: *mut c_void,
        count: i32,
        datatype: Word,
        status: *mut Status,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            let mut own_status = convert::status(status);
            let code = ffi::MPI_File_read_at(
                convert::handle(fh),
                offset,
                buf as _,
                count,
                convert::handle(datatype),
                own_status.place(),
            );
            own_status.give(status);
            library::error_to_neutral(code)
        }
    }
}

mod tool {
    use core::ffi::c_void;
    use crate::mpi::library;
    use crate::mpi::library::ffi;

    pub unsafe extern "C" fn t_pvar_handle_alloc(
        pe_session: *mut c_void,
        pvar_index: i32,
        obj_handle: *mut c_void,
        handle: *mut *mut c_void,
        count: *mut i32,
    ) -> i32 {
        // SAFETY: the stub passes on what the application gave it, and places of its own for results.
        unsafe {
            library::error_to_neutral(
                ffi::MPI_T_pvar_handle_alloc(
                    pe_session as _,
                    pvar_index,
                    obj_handle as _,
                    handle as _,
                    count,
                )
            )
        }
    }
}
