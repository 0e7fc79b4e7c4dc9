// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

mod environment {
    use core::ffi::c_int;
    use crate::ground::abi::{CommHandle, Handle};
    use crate::ground::export::export;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Abort")]
    unsafe extern "C" fn abort(comm: CommHandle, errorcode: c_int) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm = Handle::object(comm);
            by_hand::abort(comm, errorcode)
        }
    }
    export!(PMPI_Abort => abort);
}

mod local {
    use core::ffi::c_int;
    use crate::ground::abi::{DatatypeHandle, Handle, Status};
    use crate::ground::export::export;
    use crate::ground::crossing;
    use crate::objects::errhandler;
    use crate::stubs::{by_hand, steps};

    #[unsafe(export_name = "MPI_Get_count")]
    unsafe extern "C" fn get_count(
        status: *const Status,
        datatype: DatatypeHandle,
        count: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let datatype = Handle::object(datatype);
            by_hand::get_count(status, datatype, count)
        }
    }
    export!(PMPI_Get_count => get_count);

    #[unsafe(export_name = "MPI_Status_set_cancelled")]
    unsafe extern "C" fn status_set_cancelled(status: *mut Status, flag: c_int) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let _inside = crossing::enter();
            let mut new_status = steps::status(status);
            let code = crossing::cross_near(
                |lower| (lower.status_set_cancelled)(steps::place(status, &mut new_status), flag)
            );
            if code != 0 {
                return errhandler::raise(core::ptr::null_mut(), code, c"MPI_Status_set_cancelled");
            }
            steps::give_status(status, &new_status);
            0
        }
    }
    export!(PMPI_Status_set_cancelled => status_set_cancelled);
}

mod query {
    use core::ffi::c_int;

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{CommHandle, Handle};
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Cart_shift")]
    unsafe extern "C" fn cart_shift(
        comm: CommHandle,
        direction: c_int,
        disp: c_int,
        rank_source: *mut c_int,
        rank_dest: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm = Handle::object(comm);
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
    use crate::ground::abi::{CommHandle, DatatypeHandle, Handle, PlaceOf, RequestHandle};
    use crate::ground::export::export;
    use crate::stubs::short::short;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Isend")]
    #[unsafe(naked)]
    unsafe extern "C" fn isend(
        buf: *const c_void,
        count: c_int,
        datatype: DatatypeHandle,
        dest: c_int,
        tag: c_int,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        short!(isend, "MPI_Isend", isend_converted)
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn isend_converted(
        buf: *const c_void,
        count: c_int,
        datatype: DatatypeHandle,
        dest: c_int,
        tag: c_int,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let datatype = Handle::object(datatype);
            let comm = Handle::object(comm);
            let request = PlaceOf::at(request);
            by_hand::isend(buf, count, datatype, dest, tag, comm, request)
        }
    }
    export!(PMPI_Isend => isend);
}

mod completion {
    use core::ffi::c_int;
    use crate::ground::abi::{PlaceOf, RequestHandle, Status};
    use crate::ground::export::export;
    use crate::stubs::by_hand;

    #[unsafe(export_name = "MPI_Waitall")]
    unsafe extern "C" fn waitall(
        count: c_int,
        array_of_requests: *mut RequestHandle,
        array_of_statuses: *mut Status,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let array_of_requests = PlaceOf::at(array_of_requests);
            by_hand::waitall(count, array_of_requests, array_of_statuses)
        }
    }
    export!(PMPI_Waitall => waitall);
}

mod collective {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::direct::Direct;

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{CommHandle, DatatypeHandle, Handle, ListOf};
    use crate::ground::crossing::StayKind;
    use crate::ground::export::export;
    use crate::ground::object::Object;
    use crate::ground::{abi, arch, crossing};
    use crate::objects::errhandler;
    use crate::operations::{ahead, devices, direct};
    use crate::operations::clock::kept;
    use crate::operations::clock::kept::{Input, Keeps};
    use crate::operations::clock::log::Note;
    use stillpoint_clock::absent::Kind;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Allgather")]
    #[unsafe(naked)]
    #[unsafe(link_section = "stillpoint_collective")]
    unsafe extern "C" fn allgather(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: DatatypeHandle,
        recvbuf: *mut c_void,
        recvcount: c_int,
        recvtype: DatatypeHandle,
        comm: CommHandle,
    ) -> c_int {
        arch::collective!(
            name: "MPI_Allgather",
            long: allgather_converted,
            failed: direct::failed,
            returned: direct::returned,
            slot: core::mem::offset_of!(Direct, allgather),
            arguments: 7,
            handles: 36,
            looks: true,
            buffers: 0,
            noted: Kind::Unknown,
            has_copy: true,
            copy: allgather_in_place,
            keeps: Keeps::Nothing,
        )
    }

    #[unsafe(naked)]
    #[unsafe(link_section = "stillpoint_collective")]
    unsafe extern "C" fn allgather_in_place(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: DatatypeHandle,
        recvbuf: *mut c_void,
        recvcount: c_int,
        recvtype: DatatypeHandle,
        comm: CommHandle,
    ) -> c_int {
        arch::collective!(
            name: "MPI_Allgather",
            long: allgather_converted,
            failed: direct::failed,
            returned: direct::returned,
            slot: core::mem::offset_of!(Direct, allgather),
            arguments: 7,
            handles: 36,
            looks: true,
            buffers: 0,
            noted: Kind::Unknown,
            has_copy: false,
            copy: kept::put_back,
            keeps: Keeps::OwnBlock,
        )
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn allgather_converted(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: DatatypeHandle,
        recvbuf: *mut c_void,
        recvcount: c_int,
        recvtype: DatatypeHandle,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let sendtype = Handle::object(sendtype);
            let recvtype = Handle::object(recvtype);
            let comm = Handle::object(comm);
            if devices::present() && let Some(code) = allgather_on_devices(
                sendbuf,
                sendcount,
                sendtype,
                recvbuf,
                recvcount,
                recvtype,
                comm,
            ) {
                return code;
            }
            let _inside = crossing::enter_as(StayKind::Collective);
            let code = steps::clocked(
                comm,
                c"MPI_Allgather",
                if !abi::is_in_place(sendbuf) { Input::Untouched } else { Input::in_place(
                    Keeps::OwnBlock,
                    true,
                    recvbuf,
                    recvcount,
                    recvtype,
                    comm,
                ) },
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

    #[cold]
    #[inline(never)]
    unsafe fn allgather_on_devices(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: *mut Object,
        recvbuf: *mut c_void,
        recvcount: c_int,
        recvtype: *mut Object,
        comm: *mut Object,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(sendbuf, devices::BufferUse::In, devices::once(sendcount, sendtype)), devices::Buffer::new(
                recvbuf,
                devices::BufferUse::Out,
                devices::each(steps::peers(comm), recvcount, recvtype),
            )];
            let staged = match devices::Staged::new(comm, c"MPI_Allgather", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = allgather_converted(
                staged.at(0),
                sendcount,
                Handle::of(sendtype),
                staged.at(1),
                recvcount,
                Handle::of(recvtype),
                Handle::of(comm),
            );
            Some(staged.end(code))
        }
    }
    export!(PMPI_Allgather => allgather);

    #[unsafe(export_name = "MPI_Alltoallw")]
    unsafe extern "C" fn alltoallw(
        sendbuf: *const c_void,
        sendcounts: *const c_int,
        sdispls: *const c_int,
        sendtypes: *const DatatypeHandle,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        rdispls: *const c_int,
        recvtypes: *const DatatypeHandle,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let sendtypes = ListOf::at(sendtypes);
            let recvtypes = ListOf::at(recvtypes);
            let comm = Handle::object(comm);
            if devices::present() && let Some(code) = alltoallw_on_devices(
                sendbuf,
                sendcounts,
                sdispls,
                sendtypes,
                recvbuf,
                recvcounts,
                rdispls,
                recvtypes,
                comm,
            ) {
                return code;
            }
            let _inside = crossing::enter_as(StayKind::Collective);
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
                c"MPI_Alltoallw",
                if !abi::is_in_place(sendbuf) { Input::Untouched } else { Input::met(comm) },
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

    #[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
    #[cold]
    #[inline(never)]
    unsafe fn alltoallw_on_devices(
        sendbuf: *const c_void,
        sendcounts: *const c_int,
        sdispls: *const c_int,
        sendtypes: ListOf<DatatypeHandle>,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        rdispls: *const c_int,
        recvtypes: ListOf<DatatypeHandle>,
        comm: *mut Object,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(
                sendbuf,
                devices::BufferUse::In,
                devices::typed(
                    sendcounts,
                    sdispls,
                    steps::Words::new(
                        HandleKind::Datatype,
                        sendtypes,
                        if abi::is_in_place(sendbuf) { 0 } else { steps::peers(comm) },
                    ).objects(),
                ),
            ), devices::Buffer::new(recvbuf, devices::BufferUse::Out, devices::typed(recvcounts, rdispls, steps::Words::new(HandleKind::Datatype, recvtypes, steps::peers(comm)).objects()))];
            let staged = match devices::Staged::new(comm, c"MPI_Alltoallw", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = alltoallw(
                staged.at(0),
                sendcounts,
                sdispls,
                sendtypes.given(),
                staged.at(1),
                recvcounts,
                rdispls,
                recvtypes.given(),
                Handle::of(comm),
            );
            Some(staged.end(code))
        }
    }
    export!(PMPI_Alltoallw => alltoallw);

    #[unsafe(export_name = "MPI_Bcast")]
    #[unsafe(naked)]
    #[unsafe(link_section = "stillpoint_collective")]
    unsafe extern "C" fn bcast(
        buffer: *mut c_void,
        count: c_int,
        datatype: DatatypeHandle,
        root: c_int,
        comm: CommHandle,
    ) -> c_int {
        arch::collective!(
            name: "MPI_Bcast",
            long: bcast_converted,
            failed: direct::failed,
            returned: direct::returned,
            slot: core::mem::offset_of!(Direct, bcast),
            arguments: 5,
            handles: 4,
            looks: true,
            buffers: 0,
            noted: Kind::Bcast,
            has_copy: false,
            copy: bcast_converted,
            keeps: Keeps::Nothing,
        )
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn bcast_converted(
        buffer: *mut c_void,
        count: c_int,
        datatype: DatatypeHandle,
        root: c_int,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let datatype = Handle::object(datatype);
            let comm = Handle::object(comm);
            if devices::present() && let Some(code) = bcast_on_devices(
                buffer,
                count,
                datatype,
                root,
                comm,
            ) {
                return code;
            }
            let _inside = crossing::enter_as(StayKind::Collective);
            if let Some(code) = ahead::bcast(buffer, count, datatype, root, comm) {
                if code != 0 {
                    return errhandler::raise(comm, code, c"MPI_Bcast");
                }
                return 0;
            }
            let note = Note { kind: Kind::Bcast, count, root, datatype };
            let code = steps::noted(
                comm,
                c"MPI_Bcast",
                Input::Untouched,
                &note,
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

    #[cold]
    #[inline(never)]
    unsafe fn bcast_on_devices(
        buffer: *mut c_void,
        count: c_int,
        datatype: *mut Object,
        root: c_int,
        comm: *mut Object,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(
                buffer,
                devices::BufferUse::Out,
                if steps::is_root(root, comm) || steps::is_member(root, comm) { devices::once(
                    count,
                    datatype,
                ) } else { Vec::new() },
            )];
            let staged = match devices::Staged::new(comm, c"MPI_Bcast", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = bcast_converted(
                staged.at(0),
                count,
                Handle::of(datatype),
                root,
                Handle::of(comm),
            );
            Some(staged.end(code))
        }
    }
    export!(PMPI_Bcast => bcast);
}

mod nonblocking_collective {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{Aint, CommHandle, DatatypeHandle, Handle, ListOf, OpHandle, PlaceOf, RequestHandle};
    use crate::ground::crossing::StayKind;
    use crate::ground::export::export;
    use crate::ground::object::Object;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::{devices, direct};
    use crate::stubs::steps;

    #[unsafe(export_name = "MPI_Ineighbor_alltoallw")]
    unsafe extern "C" fn ineighbor_alltoallw(
        sendbuf: *const c_void,
        sendcounts: *const c_int,
        sdispls: *const Aint,
        sendtypes: *const DatatypeHandle,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        rdispls: *const Aint,
        recvtypes: *const DatatypeHandle,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let sendtypes = ListOf::at(sendtypes);
            let recvtypes = ListOf::at(recvtypes);
            let comm = Handle::object(comm);
            let request = PlaceOf::at(request);
            if devices::present() && let Some(code) = ineighbor_alltoallw_on_devices(
                sendbuf,
                sendcounts,
                sdispls,
                sendtypes,
                recvbuf,
                recvcounts,
                rdispls,
                recvtypes,
                comm,
                request,
            ) {
                return code;
            }
            let _inside = crossing::enter_as(StayKind::Collective);
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
                true,
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

    #[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
    #[cold]
    #[inline(never)]
    unsafe fn ineighbor_alltoallw_on_devices(
        sendbuf: *const c_void,
        sendcounts: *const c_int,
        sdispls: *const Aint,
        sendtypes: ListOf<DatatypeHandle>,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        rdispls: *const Aint,
        recvtypes: ListOf<DatatypeHandle>,
        comm: *mut Object,
        request: PlaceOf<RequestHandle>,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(
                sendbuf,
                devices::BufferUse::In,
                devices::typed(
                    sendcounts,
                    sdispls,
                    steps::Words::new(
                        HandleKind::Datatype,
                        sendtypes,
                        steps::destinations(comm),
                    ).objects(),
                ),
            ), devices::Buffer::new(recvbuf, devices::BufferUse::Out, devices::typed(recvcounts, rdispls, steps::Words::new(HandleKind::Datatype, recvtypes, steps::sources(comm)).objects()))];
            let staged = match devices::Staged::new(
                comm,
                c"MPI_Ineighbor_alltoallw",
                false,
                buffers,
            )? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = ineighbor_alltoallw(
                staged.at(0),
                sendcounts,
                sdispls,
                sendtypes.given(),
                staged.at(1),
                recvcounts,
                rdispls,
                recvtypes.given(),
                Handle::of(comm),
                request.given(),
            );
            Some(staged.of_request(code, request))
        }
    }
    export!(PMPI_Ineighbor_alltoallw => ineighbor_alltoallw);

    #[unsafe(export_name = "MPI_Ireduce")]
    unsafe extern "C" fn ireduce(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: c_int,
        datatype: DatatypeHandle,
        op: OpHandle,
        root: c_int,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let datatype = Handle::object(datatype);
            let op = Handle::object(op);
            let comm = Handle::object(comm);
            let request = PlaceOf::at(request);
            if direct::open() && direct::predefined([datatype, op]) && !abi::is_in_place(sendbuf) && let Some(begun) = direct::initiate(
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
        datatype: *mut Object,
        op: *mut Object,
        root: c_int,
        comm: *mut Object,
        request: PlaceOf<RequestHandle>,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            if devices::present() && let Some(code) = ireduce_on_devices(
                sendbuf,
                recvbuf,
                count,
                datatype,
                op,
                root,
                comm,
                request,
            ) {
                return code;
            }
            let _inside = crossing::enter_as(StayKind::Collective);
            let code = steps::started(
                comm,
                request,
                !abi::is_in_place(sendbuf),
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

    #[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
    #[cold]
    #[inline(never)]
    unsafe fn ireduce_on_devices(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: c_int,
        datatype: *mut Object,
        op: *mut Object,
        root: c_int,
        comm: *mut Object,
        request: PlaceOf<RequestHandle>,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(
                sendbuf,
                devices::BufferUse::In,
                if steps::is_member(root, comm) { devices::once(
                    count,
                    datatype,
                ) } else { Vec::new() },
            ), devices::Buffer::new(recvbuf, devices::BufferUse::Out, if steps::is_root(root, comm) { devices::once(count, datatype) } else { Vec::new() })];
            let staged = match devices::Staged::new(comm, c"MPI_Ireduce", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = ireduce_converted(
                staged.at(0),
                staged.at(1),
                count,
                datatype,
                op,
                root,
                comm,
                request,
            );
            Some(staged.of_request(code, request))
        }
    }
    export!(PMPI_Ireduce => ireduce);
}

mod persistent_collective {
    use core::ffi::c_int;

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{CommHandle, Handle, InfoHandle, PlaceOf, RequestHandle};
    use crate::ground::crossing::StayKind;
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::stubs::steps;

    #[unsafe(export_name = "MPIX_Barrier_init")]
    unsafe extern "C" fn x_barrier_init(
        comm: CommHandle,
        info: InfoHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm = Handle::object(comm);
            let info = Handle::object(info);
            let request = PlaceOf::at(request);
            let _inside = crossing::enter_as(StayKind::Collective);
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
    use crate::ground::abi::{Aint, CommCopyAttrFunction, CommDeleteAttrFunction, CommHandle, DatatypeHandle, Handle, InfoHandle, ListOf, OpHandle, PlaceOf, UserFunction};
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
        comm: CommHandle,
        comm_keyval: c_int,
        attribute_val: *mut c_void,
        flag: *mut c_int,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm = Handle::object(comm);
            by_hand::comm_get_attr(comm, comm_keyval, attribute_val, flag)
        }
    }
    export!(PMPI_Comm_get_attr => comm_get_attr);

    #[unsafe(export_name = "MPI_Comm_split_type")]
    unsafe extern "C" fn comm_split_type(
        comm: CommHandle,
        split_type: c_int,
        key: c_int,
        info: InfoHandle,
        newcomm: *mut CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm = Handle::object(comm);
            let info = Handle::object(info);
            let newcomm = PlaceOf::at(newcomm);
            by_hand::comm_split_type(comm, split_type, key, info, newcomm)
        }
    }
    export!(PMPI_Comm_split_type => comm_split_type);

    #[unsafe(export_name = "MPI_Dist_graph_create_adjacent")]
    unsafe extern "C" fn dist_graph_create_adjacent(
        comm_old: CommHandle,
        indegree: c_int,
        sources: *const c_int,
        sourceweights: *const c_int,
        outdegree: c_int,
        destinations: *const c_int,
        destweights: *const c_int,
        info: InfoHandle,
        reorder: c_int,
        comm_dist_graph: *mut CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm_old = Handle::object(comm_old);
            let info = Handle::object(info);
            let comm_dist_graph = PlaceOf::at(comm_dist_graph);
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
    unsafe extern "C" fn op_create(
        user_fn: UserFunction,
        commute: c_int,
        op: *mut OpHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let op = PlaceOf::at(op);
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
        oldtype: DatatypeHandle,
        newtype: *mut DatatypeHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let oldtype = Handle::object(oldtype);
            let newtype = PlaceOf::at(newtype);
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
        array_of_types: *const DatatypeHandle,
        newtype: *mut DatatypeHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let array_of_types = ListOf::at(array_of_types);
            let newtype = PlaceOf::at(newtype);
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

    use crate::ground::abi::{Aint, CommHandle, DatatypeHandle, Handle, InfoHandle, PlaceOf, RequestHandle, WinHandle};
    use crate::ground::export::export;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::devices;
    use crate::stubs::{by_hand, steps};
    use crate::windows;

    #[unsafe(export_name = "MPI_Rput")]
    unsafe extern "C" fn rput(
        origin_addr: *const c_void,
        origin_count: c_int,
        origin_datatype: DatatypeHandle,
        target_rank: c_int,
        target_disp: Aint,
        target_count: c_int,
        target_datatype: DatatypeHandle,
        win: WinHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let origin_datatype = Handle::object(origin_datatype);
            let target_datatype = Handle::object(target_datatype);
            let win = Handle::object(win);
            let request = PlaceOf::at(request);
            if devices::present() && let Some(code) = devices::refuses(
                win,
                c"MPI_Rput",
                &[origin_addr],
            ) {
                return code;
            }
            let _inside = crossing::enter();
            if let Err(code) = windows::access(win) {
                return errhandler::raise(win, code, c"MPI_Rput");
            }
            let mut new_request = 0;
            let code = crossing::cross(
                |lower| (lower.rput)(
                    abi::buffer(origin_addr),
                    origin_count,
                    abi::word(HandleKind::Datatype, origin_datatype),
                    abi::rank_to_neutral(target_rank),
                    target_disp,
                    target_count,
                    abi::word(HandleKind::Datatype, target_datatype),
                    abi::word(HandleKind::Window, win),
                    steps::place(request, &mut new_request),
                )
            );
            if code != 0 {
                return errhandler::raise(win, code, c"MPI_Rput");
            }
            steps::one_sided(request, new_request);
            0
        }
    }
    export!(PMPI_Rput => rput);

    #[unsafe(export_name = "MPI_Win_create")]
    unsafe extern "C" fn win_create(
        base: *mut c_void,
        size: Aint,
        disp_unit: c_int,
        info: InfoHandle,
        comm: CommHandle,
        win: *mut WinHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let info = Handle::object(info);
            let comm = Handle::object(comm);
            let win = PlaceOf::at(win);
            by_hand::win_create(base, size, disp_unit, info, comm, win)
        }
    }
    export!(PMPI_Win_create => win_create);
}

mod file {
    use core::ffi::{c_char, c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{CommHandle, DatatypeHandle, FileHandle, Handle, InfoHandle, Offset, PlaceOf, Status};
    use crate::ground::export::export;
    use crate::ground::object::Object;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::devices;
    use crate::stubs::{by_hand, files, steps};

    #[unsafe(export_name = "MPI_File_open")]
    unsafe extern "C" fn file_open(
        comm: CommHandle,
        filename: *const c_char,
        amode: c_int,
        info: InfoHandle,
        fh: *mut FileHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let comm = Handle::object(comm);
            let info = Handle::object(info);
            let fh = PlaceOf::at(fh);
            by_hand::file_open(comm, filename, amode, info, fh)
        }
    }
    export!(PMPI_File_open => file_open);

    #[unsafe(export_name = "MPI_File_read_at")]
    unsafe extern "C" fn file_read_at(
        fh: FileHandle,
        offset: Offset,
        buf: *mut c_void,
        count: c_int,
        datatype: DatatypeHandle,
        status: *mut Status,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let fh = Handle::object(fh);
            let datatype = Handle::object(datatype);
            if devices::present() && let Some(code) = file_read_at_on_devices(
                fh,
                offset,
                buf,
                count,
                datatype,
                status,
            ) {
                return code;
            }
            let _inside = crossing::enter();
            if let Err(code) = files::unsequenced(fh) {
                return errhandler::raise(fh, code, c"MPI_File_read_at");
            }
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

    #[cold]
    #[inline(never)]
    unsafe fn file_read_at_on_devices(
        fh: *mut Object,
        offset: Offset,
        buf: *mut c_void,
        count: c_int,
        datatype: *mut Object,
        status: *mut Status,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(
                buf,
                devices::BufferUse::Out,
                devices::once(count, datatype),
            )];
            let staged = match devices::Staged::new(fh, c"MPI_File_read_at", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = file_read_at(
                Handle::of(fh),
                offset,
                staged.at(0),
                count,
                Handle::of(datatype),
                status,
            );
            Some(staged.end(code))
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
            hindrances::kept(hindrances::Kept::ToolHandle);
            0
        }
    }
    export!(PMPI_T_pvar_handle_alloc => t_pvar_handle_alloc);
}

mod refused {
    use crate::ground::export::export;
    use crate::stubs::uncarried::{RefusalReason, refuse};

    #[unsafe(export_name = "MPIX_Comm_ack_failed")]
    unsafe extern "C" fn mpix_comm_ack_failed() -> isize {
        // SAFETY: a stub, on a thread of the application's.
        unsafe { refuse(c"MPIX_Comm_ack_failed", RefusalReason::Extension) }
    }
    export!(PMPIX_Comm_ack_failed => mpix_comm_ack_failed);
}
mod also {
    use crate::ground::export::export;

    unsafe extern "C" {
        safe fn MPIX_Allgather_init();
    }
    export!(MPI_Allgather_init => MPIX_Allgather_init);
    export!(PMPI_Allgather_init => MPIX_Allgather_init);
}
