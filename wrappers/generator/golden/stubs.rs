// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

mod environment {
    use core::ffi::c_int;
    use crate::ground::abi::Comm;
    use crate::ground::export::export;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Abort")]
    unsafe extern "C" fn abort(comm: Comm, errorcode: c_int) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::abort(comm, errorcode)
        }
    }
    export!(PMPI_Abort => abort);
}

mod local {
    use core::ffi::c_int;

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Datatype, Status};
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Get_count")]
    unsafe extern "C" fn get_count(
        status: *const Status,
        datatype: Datatype,
        count: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter();
            let new_status = steps::status(status);
            let code = crossing::cross(
                |lower| (lower.get_count)(
                    steps::given(status, &raw const new_status),
                    abi::word(HandleKind::Datatype, datatype),
                    count,
                )
            );
            if code != 0 {
                return errhandler::raise(core::ptr::null_mut(), code, c"MPI_Get_count");
            }
            0
        }
    }
    export!(PMPI_Get_count => get_count);
}

mod query {
    use core::ffi::c_int;

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::Comm;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Cart_shift")]
    unsafe extern "C" fn cart_shift(
        comm: Comm,
        direction: c_int,
        disp: c_int,
        rank_source: *mut c_int,
        rank_dest: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter();
            let mut new_rank_source = 0;
            let mut new_rank_dest = 0;
            let code = crossing::cross(
                |lower| (lower.cart_shift)(
                    abi::word(HandleKind::Communicator, comm),
                    direction,
                    disp,
                    steps::place(rank_source, &mut new_rank_source),
                    steps::place(rank_dest, &mut new_rank_dest),
                )
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Cart_shift");
            }
            steps::give(rank_source, abi::rank_from_neutral(new_rank_source));
            steps::give(rank_dest, abi::rank_from_neutral(new_rank_dest));
            0
        }
    }
    export!(PMPI_Cart_shift => cart_shift);
}

mod point_to_point {
    use core::ffi::{c_int, c_void};
    use crate::ground::abi::{Comm, Datatype, Request};
    use crate::ground::export::export;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Isend")]
    unsafe extern "C" fn isend(
        buf: *const c_void,
        count: c_int,
        datatype: Datatype,
        dest: c_int,
        tag: c_int,
        comm: Comm,
        request: *mut Request,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::isend(buf, count, datatype, dest, tag, comm, request)
        }
    }
    export!(PMPI_Isend => isend);
}

mod completion {
    use core::ffi::c_int;
    use crate::ground::abi::{Request, Status};
    use crate::ground::export::export;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Waitall")]
    unsafe extern "C" fn waitall(
        count: c_int,
        array_of_requests: *mut Request,
        array_of_statuses: *mut Status,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::waitall(count, array_of_requests, array_of_statuses)
        }
    }
    export!(PMPI_Waitall => waitall);
}

mod collective {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Comm, Datatype};
    use crate::ground::crossing::Place;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::direct;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Allgather")]
    unsafe extern "C" fn allgather(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: c_int,
        recvtype: Datatype,
        comm: Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            if direct::open() && direct::objects(
                [sendtype, recvtype]
            ) && let Some(stay) = direct::begin(comm) {
                let code = (direct::table().allgather)(
                    sendbuf,
                    sendcount,
                    (*sendtype).lower,
                    recvbuf,
                    recvcount,
                    (*recvtype).lower,
                    (*comm).lower,
                );
                return stay.end(comm, code, c"MPI_Allgather");
            }
            allgather_converted(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn allgather_converted(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: c_int,
        recvtype: Datatype,
        comm: Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            let code = steps::clocked(
                comm,
                move |lower| (lower.allgather)(
                    abi::buffer(sendbuf),
                    sendcount,
                    abi::word(HandleKind::Datatype, sendtype),
                    abi::buffer(recvbuf),
                    recvcount,
                    abi::word(HandleKind::Datatype, recvtype),
                    abi::word(HandleKind::Communicator, comm),
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Allgather");
            }
            0
        }
    }
    export!(PMPI_Allgather => allgather);

    #[unsafe(export_name = "MPI_Alltoallw")]
    unsafe extern "C" fn alltoallw(
        sendbuf: *const c_void,
        sendcounts: *const c_int,
        sdispls: *const c_int,
        sendtypes: *const Datatype,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        rdispls: *const c_int,
        recvtypes: *const Datatype,
        comm: Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            let new_sendtypes = steps::Words::new(
                HandleKind::Datatype,
                sendtypes,
                if abi::is_in_place(sendbuf) { 0 } else { steps::peers(comm) },
            );
            let new_recvtypes = steps::Words::new(
                HandleKind::Datatype,
                recvtypes,
                steps::peers(comm),
            );
            let code = steps::clocked(
                comm,
                move |lower| (lower.alltoallw)(
                    abi::buffer(sendbuf),
                    sendcounts,
                    sdispls,
                    new_sendtypes.refreshed(),
                    abi::buffer(recvbuf),
                    recvcounts,
                    rdispls,
                    new_recvtypes.refreshed(),
                    abi::word(HandleKind::Communicator, comm),
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Alltoallw");
            }
            0
        }
    }
    export!(PMPI_Alltoallw => alltoallw);

    #[unsafe(export_name = "MPI_Bcast")]
    unsafe extern "C" fn bcast(
        buffer: *mut c_void,
        count: c_int,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            if direct::open() && direct::objects(
                [datatype]
            ) && let Some(stay) = direct::begin(comm) {
                let code = (direct::table().bcast)(
                    buffer,
                    count,
                    (*datatype).lower,
                    root,
                    (*comm).lower,
                );
                return stay.end(comm, code, c"MPI_Bcast");
            }
            bcast_converted(buffer, count, datatype, root, comm)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn bcast_converted(
        buffer: *mut c_void,
        count: c_int,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            let code = steps::clocked(
                comm,
                move |lower| (lower.bcast)(
                    abi::buffer(buffer),
                    count,
                    abi::word(HandleKind::Datatype, datatype),
                    abi::rank_to_neutral(root),
                    abi::word(HandleKind::Communicator, comm),
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Bcast");
            }
            0
        }
    }
    export!(PMPI_Bcast => bcast);
}

mod nonblocking_collective {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Aint, Comm, Datatype, Op, Request};
    use crate::ground::crossing::Place;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::direct;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Ineighbor_alltoallw")]
    unsafe extern "C" fn ineighbor_alltoallw(
        sendbuf: *const c_void,
        sendcounts: *const c_int,
        sdispls: *const Aint,
        sendtypes: *const Datatype,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        rdispls: *const Aint,
        recvtypes: *const Datatype,
        comm: Comm,
        request: *mut Request,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            let new_sendtypes = steps::Words::new(
                HandleKind::Datatype,
                sendtypes,
                steps::destinations(comm),
            );
            let new_recvtypes = steps::Words::new(
                HandleKind::Datatype,
                recvtypes,
                steps::sources(comm),
            );
            let code = steps::started(
                comm,
                request,
                !abi::is_in_place(sendbuf) && !abi::is_in_place(recvbuf),
                &[&[comm][..], new_sendtypes.objects(), new_recvtypes.objects()].concat(),
                move |lower, word| (lower.ineighbor_alltoallw)(
                    abi::buffer(sendbuf),
                    sendcounts,
                    sdispls,
                    new_sendtypes.refreshed(),
                    abi::buffer(recvbuf),
                    recvcounts,
                    rdispls,
                    new_recvtypes.refreshed(),
                    abi::word(HandleKind::Communicator, comm),
                    word,
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Ineighbor_alltoallw");
            }
            0
        }
    }
    export!(PMPI_Ineighbor_alltoallw => ineighbor_alltoallw);

    #[unsafe(export_name = "MPI_Ireduce")]
    unsafe extern "C" fn ireduce(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: c_int,
        datatype: Datatype,
        op: Op,
        root: c_int,
        comm: Comm,
        request: *mut Request,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            if direct::open() && direct::predefined([datatype, op]) && !abi::is_in_place(sendbuf) && !abi::is_in_place(recvbuf) && let Some(begun) = direct::initiate(
                comm,
                request,
                move |lower, word| (lower.ireduce)(
                    abi::buffer(sendbuf),
                    abi::buffer(recvbuf),
                    count,
                    abi::word(HandleKind::Datatype, datatype),
                    abi::word(HandleKind::Operator, op),
                    abi::rank_to_neutral(root),
                    abi::word(HandleKind::Communicator, comm),
                    word,
                ),
            ) {
                let code = (direct::table().ireduce)(
                    sendbuf,
                    recvbuf,
                    count,
                    (*datatype).lower,
                    (*op).lower,
                    root,
                    (*comm).lower,
                    begun.word(),
                );
                return begun.end(code, c"MPI_Ireduce");
            }
            ireduce_converted(sendbuf, recvbuf, count, datatype, op, root, comm, request)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn ireduce_converted(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: c_int,
        datatype: Datatype,
        op: Op,
        root: c_int,
        comm: Comm,
        request: *mut Request,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            let code = steps::started(
                comm,
                request,
                !abi::is_in_place(sendbuf) && !abi::is_in_place(recvbuf),
                &[datatype, op, comm],
                move |lower, word| (lower.ireduce)(
                    abi::buffer(sendbuf),
                    abi::buffer(recvbuf),
                    count,
                    abi::word(HandleKind::Datatype, datatype),
                    abi::word(HandleKind::Operator, op),
                    abi::rank_to_neutral(root),
                    abi::word(HandleKind::Communicator, comm),
                    word,
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Ireduce");
            }
            0
        }
    }
    export!(PMPI_Ireduce => ireduce);
}

mod persistent_collective {
    use core::ffi::c_int;

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Comm, Info, Request};
    use crate::ground::crossing::Place;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPIX_Barrier_init")]
    unsafe extern "C" fn x_barrier_init(comm: Comm, info: Info, request: *mut Request) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            if let Err(code) = steps::info_below(info) {
                return errhandler::raise(comm, code, c"MPIX_Barrier_init");
            }
            let code = steps::persistent(
                comm,
                request,
                true,
                &[comm, info],
                move |lower, word| (lower.x_barrier_init)(
                    abi::word(HandleKind::Communicator, comm),
                    abi::word(HandleKind::Info, info),
                    word,
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPIX_Barrier_init");
            }
            0
        }
    }
    export!(PMPIX_Barrier_init => x_barrier_init);
}

mod object {
    use core::ffi::{c_int, c_void};
    use crate::ground::abi::{Aint, Comm, CommCopyAttrFunction, CommDeleteAttrFunction, Datatype, Info, Op, UserFunction};
    use crate::ground::export::export;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Comm_create_keyval")]
    unsafe extern "C" fn comm_create_keyval(
        comm_copy_attr_fn: CommCopyAttrFunction,
        comm_delete_attr_fn: CommDeleteAttrFunction,
        comm_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::comm_create_keyval(
                comm_copy_attr_fn,
                comm_delete_attr_fn,
                comm_keyval,
                extra_state,
            )
        }
    }
    export!(PMPI_Comm_create_keyval => comm_create_keyval);

    #[unsafe(export_name = "MPI_Comm_get_attr")]
    unsafe extern "C" fn comm_get_attr(
        comm: Comm,
        comm_keyval: c_int,
        attribute_val: *mut c_void,
        flag: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::comm_get_attr(comm, comm_keyval, attribute_val, flag)
        }
    }
    export!(PMPI_Comm_get_attr => comm_get_attr);

    #[unsafe(export_name = "MPI_Comm_split_type")]
    unsafe extern "C" fn comm_split_type(
        comm: Comm,
        split_type: c_int,
        key: c_int,
        info: Info,
        newcomm: *mut Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::comm_split_type(comm, split_type, key, info, newcomm)
        }
    }
    export!(PMPI_Comm_split_type => comm_split_type);

    #[unsafe(export_name = "MPI_Dist_graph_create_adjacent")]
    unsafe extern "C" fn dist_graph_create_adjacent(
        comm_old: Comm,
        indegree: c_int,
        sources: *const c_int,
        sourceweights: *const c_int,
        outdegree: c_int,
        destinations: *const c_int,
        destweights: *const c_int,
        info: Info,
        reorder: c_int,
        comm_dist_graph: *mut Comm,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::dist_graph_create_adjacent(
                comm_old,
                indegree,
                sources,
                sourceweights,
                outdegree,
                destinations,
                destweights,
                info,
                reorder,
                comm_dist_graph,
            )
        }
    }
    export!(PMPI_Dist_graph_create_adjacent => dist_graph_create_adjacent);

    #[unsafe(export_name = "MPI_Op_create")]
    unsafe extern "C" fn op_create(user_fn: UserFunction, commute: c_int, op: *mut Op) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::op_create(user_fn, commute, op)
        }
    }
    export!(PMPI_Op_create => op_create);

    #[unsafe(export_name = "MPI_Type_create_darray")]
    unsafe extern "C" fn type_create_darray(
        size: c_int,
        rank: c_int,
        ndims: c_int,
        array_of_gsizes: *const c_int,
        array_of_distribs: *const c_int,
        array_of_dargs: *const c_int,
        array_of_psizes: *const c_int,
        order: c_int,
        oldtype: Datatype,
        newtype: *mut Datatype,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::type_create_darray(
                size,
                rank,
                ndims,
                array_of_gsizes,
                array_of_distribs,
                array_of_dargs,
                array_of_psizes,
                order,
                oldtype,
                newtype,
            )
        }
    }
    export!(PMPI_Type_create_darray => type_create_darray);

    #[unsafe(export_name = "MPI_Type_struct")]
    unsafe extern "C" fn type_struct(
        count: c_int,
        array_of_blocklengths: *const c_int,
        array_of_displacements: *const Aint,
        array_of_types: *const Datatype,
        newtype: *mut Datatype,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            by_hand::type_struct(
                count,
                array_of_blocklengths,
                array_of_displacements,
                array_of_types,
                newtype,
            )
        }
    }
    export!(PMPI_Type_struct => type_struct);
}

mod one_sided {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Aint, Comm, Info, Win};
    use crate::ground::crossing::Place;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing, hindrances};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Win_create")]
    unsafe extern "C" fn win_create(
        base: *mut c_void,
        size: Aint,
        disp_unit: c_int,
        info: Info,
        comm: Comm,
        win: *mut Win,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            if let Err(code) = steps::info_below(info) {
                return errhandler::raise(comm, code, c"MPI_Win_create");
            }
            let mut new_win = 0;
            let code = steps::clocked(
                comm,
                |lower| (lower.win_create)(
                    abi::buffer(base),
                    size,
                    disp_unit,
                    abi::word(HandleKind::Info, info),
                    abi::word(HandleKind::Communicator, comm),
                    steps::place(win, &mut new_win),
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Win_create");
            }
            steps::opened_window(win, new_win, comm);
            hindrances::alive(hindrances::Reason::Window);
            0
        }
    }
    export!(PMPI_Win_create => win_create);
}

mod file {
    use core::ffi::{c_char, c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Comm, Datatype, File, Info, Offset, Status};
    use crate::ground::crossing::Place;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing, hindrances};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_File_open")]
    unsafe extern "C" fn file_open(
        comm: Comm,
        filename: *const c_char,
        amode: c_int,
        info: Info,
        fh: *mut File,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter_as(Place::Collective);
            if let Err(code) = steps::info_below(info) {
                return errhandler::raise(steps::null_file(), code, c"MPI_File_open");
            }
            let mut new_fh = 0;
            let code = steps::clocked(
                comm,
                |lower| (lower.file_open)(
                    abi::word(HandleKind::Communicator, comm),
                    filename,
                    abi::mode_to_neutral(amode),
                    abi::word(HandleKind::Info, info),
                    steps::place(fh, &mut new_fh),
                ),
            );
            if code != 0 {
                return errhandler::raise(steps::null_file(), code, c"MPI_File_open");
            }
            steps::opened_file(fh, new_fh, comm);
            hindrances::alive(hindrances::Reason::File);
            0
        }
    }
    export!(PMPI_File_open => file_open);

    #[unsafe(export_name = "MPI_File_read_at")]
    unsafe extern "C" fn file_read_at(
        fh: File,
        offset: Offset,
        buf: *mut c_void,
        count: c_int,
        datatype: Datatype,
        status: *mut Status,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter();
            let mut new_status = steps::status(status);
            let code = crossing::cross(
                |lower| (lower.file_read_at)(
                    abi::word(HandleKind::File, fh),
                    offset,
                    abi::buffer(buf),
                    count,
                    abi::word(HandleKind::Datatype, datatype),
                    steps::place(status, &mut new_status),
                )
            );
            if code != 0 {
                return errhandler::raise(fh, code, c"MPI_File_read_at");
            }
            steps::give_status(status, &new_status);
            0
        }
    }
    export!(PMPI_File_read_at => file_read_at);
}

mod tool {
    use core::ffi::{c_int, c_void};
    use crate::ground::export::export;
    use crate::ground::{abi, crossing, hindrances};
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_T_pvar_handle_alloc")]
    unsafe extern "C" fn t_pvar_handle_alloc(
        pe_session: *mut c_void,
        pvar_index: c_int,
        obj_handle: *mut c_void,
        handle: *mut *mut c_void,
        count: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter();
            let mut new_obj_handle = 0;
            let code = crossing::cross(
                |lower| (lower.t_pvar_handle_alloc)(
                    pe_session,
                    pvar_index,
                    steps::tool_object(obj_handle, &mut new_obj_handle),
                    handle,
                    count,
                )
            );
            if code != 0 {
                return abi::error_from_neutral(code);
            }
            hindrances::alive(hindrances::Reason::ToolHandle);
            0
        }
    }
    export!(PMPI_T_pvar_handle_alloc => t_pvar_handle_alloc);
}

