// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

mod local {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{CommHandle, Count, DatatypeHandle, Handle};
    use crate::ground::export::export;
    use crate::ground::object::Object;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::devices;
    use crate::stubs::large;

    #[unsafe(export_name = "MPI_Pack")]
    unsafe extern "C" fn pack(
        inbuf: *const c_void,
        incount: c_int,
        datatype: DatatypeHandle,
        outbuf: *mut c_void,
        outsize: c_int,
        position: *mut c_int,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let datatype = Handle::object(datatype);
            let comm = Handle::object(comm);
            if devices::present() && let Some(code) = pack_on_devices(
                inbuf,
                incount,
                datatype,
                outbuf,
                outsize,
                position,
                comm,
            ) {
                return code;
            }
            let _inside = crossing::enter();
            let code = crossing::cross_near(
                |lower| (lower.pack)(
                    abi::buffer(inbuf),
                    incount,
                    abi::word(HandleKind::Datatype, datatype),
                    abi::buffer(outbuf),
                    outsize,
                    position,
                    abi::word(HandleKind::Communicator, comm),
                )
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Pack");
            }
            0
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn pack_on_devices(
        inbuf: *const c_void,
        incount: c_int,
        datatype: *mut Object,
        outbuf: *mut c_void,
        outsize: c_int,
        position: *mut c_int,
        comm: *mut Object,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(
                inbuf,
                devices::BufferUse::In,
                devices::once(incount, datatype),
            ), devices::Buffer::new(outbuf, devices::BufferUse::Out, devices::bytes(outsize))];
            let staged = match devices::Staged::new(comm, c"MPI_Pack", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = pack(
                staged.at(0),
                incount,
                Handle::of(datatype),
                staged.at(1),
                outsize,
                position,
                Handle::of(comm),
            );
            Some(staged.end(code))
        }
    }
    export!(PMPI_Pack => pack);

    #[unsafe(export_name = "MPI_Pack_c")]
    unsafe extern "C" fn pack_large(
        inbuf: *const c_void,
        incount: Count,
        datatype: DatatypeHandle,
        outbuf: *mut c_void,
        outsize: Count,
        position: *mut Count,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let Some(narrow_incount) = large::Typed::new(incount, datatype) else {
                return large::too_large(c"MPI_Pack_c");
            };
            let Some(narrow_outsize) = large::int(outsize) else {
                return large::too_large(c"MPI_Pack_c");
            };
            let Some(mut narrow_position) = large::read(position) else {
                return large::too_large(c"MPI_Pack_c");
            };
            let code = pack(
                inbuf,
                narrow_incount.count(),
                narrow_incount.datatype(),
                outbuf,
                narrow_outsize,
                large::place(position, &mut narrow_position),
                comm,
            );
            large::write(position, narrow_position, code);
            code
        }
    }
    export!(PMPI_Pack_c => pack_large);
}

mod point_to_point {
    use core::ffi::{c_int, c_void};
    use crate::ground::abi::{CommHandle, Count, DatatypeHandle, Handle};
    use crate::ground::export::export;
    use crate::stubs::short::short;
    use crate::stubs::{by_hand, large};

    #[unsafe(export_name = "MPI_Send")]
    #[unsafe(naked)]
    unsafe extern "C" fn send(
        buf: *const c_void,
        count: c_int,
        datatype: DatatypeHandle,
        dest: c_int,
        tag: c_int,
        comm: CommHandle,
    ) -> c_int {
        short!(send, "MPI_Send", send_converted)
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn send_converted(
        buf: *const c_void,
        count: c_int,
        datatype: DatatypeHandle,
        dest: c_int,
        tag: c_int,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let datatype = Handle::object(datatype);
            let comm = Handle::object(comm);
            by_hand::send(buf, count, datatype, dest, tag, comm)
        }
    }
    export!(PMPI_Send => send);

    #[unsafe(export_name = "MPI_Send_c")]
    unsafe extern "C" fn send_large(
        buf: *const c_void,
        count: Count,
        datatype: DatatypeHandle,
        dest: c_int,
        tag: c_int,
        comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let Some(narrow_count) = large::Typed::new(count, datatype) else {
                return large::too_large(c"MPI_Send_c");
            };
            let code = send(buf, narrow_count.count(), narrow_count.datatype(), dest, tag, comm);
            code
        }
    }
    export!(PMPI_Send_c => send_large);
}

mod nonblocking_collective {
    use core::ffi::{c_int, c_void};

    use stillpoint_wrappers::gate::HandleKind;

    use crate::ground::abi::{CommHandle, Count, DatatypeHandle, Handle, PlaceOf, RequestHandle};
    use crate::ground::crossing::StayKind;
    use crate::ground::export::export;
    use crate::ground::object::Object;
    use crate::ground::{abi, crossing};
    use crate::objects::errhandler;
    use crate::operations::{devices, direct};
    use crate::stubs::{large, steps};

    unsafe extern "C" fn igatherv(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: DatatypeHandle,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        displs: *const c_int,
        recvtype: DatatypeHandle,
        root: c_int,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let sendtype = Handle::object(sendtype);
            let recvtype = Handle::object(recvtype);
            let comm = Handle::object(comm);
            let request = PlaceOf::at(request);
            if direct::open() && direct::predefined([sendtype, recvtype]) && !abi::is_in_place(sendbuf) && let Some(begun) = direct::initiate(
                comm,
                request,
                move |lower, word| (lower.igatherv)(
                    abi::buffer(sendbuf),
                    sendcount,
                    abi::word(HandleKind::Datatype, sendtype),
                    abi::buffer(recvbuf),
                    recvcounts,
                    displs,
                    abi::word(HandleKind::Datatype, recvtype),
                    abi::rank_to_neutral(root),
                    abi::word(HandleKind::Communicator, comm),
                    word,
                ),
            ) {
                let code = (direct::table().igatherv)(
                    sendbuf,
                    sendcount,
                    (*sendtype).lower,
                    recvbuf,
                    recvcounts,
                    displs,
                    (*recvtype).lower,
                    root,
                    (*comm).lower,
                    begun.word(),
                );
                return begun.end(code, c"MPI_Igatherv");
            }
            igatherv_converted(
                sendbuf,
                sendcount,
                sendtype,
                recvbuf,
                recvcounts,
                displs,
                recvtype,
                root,
                comm,
                request,
            )
        }
    }

    #[cold]
    #[inline(never)]
    unsafe extern "C" fn igatherv_converted(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: *mut Object,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        displs: *const c_int,
        recvtype: *mut Object,
        root: c_int,
        comm: *mut Object,
        request: PlaceOf<RequestHandle>,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            if devices::present() && let Some(code) = igatherv_on_devices(
                sendbuf,
                sendcount,
                sendtype,
                recvbuf,
                recvcounts,
                displs,
                recvtype,
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
                &[sendtype, recvtype, comm],
                move |lower, word| (lower.igatherv)(
                    abi::buffer(sendbuf),
                    sendcount,
                    abi::word(HandleKind::Datatype, sendtype),
                    abi::buffer(recvbuf),
                    recvcounts,
                    displs,
                    abi::word(HandleKind::Datatype, recvtype),
                    abi::rank_to_neutral(root),
                    abi::word(HandleKind::Communicator, comm),
                    word,
                ),
            );
            if code != 0 {
                return errhandler::raise(comm, code, c"MPI_Igatherv");
            }
            0
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the MPI function has them")]
    #[cold]
    #[inline(never)]
    unsafe fn igatherv_on_devices(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: *mut Object,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        displs: *const c_int,
        recvtype: *mut Object,
        root: c_int,
        comm: *mut Object,
        request: PlaceOf<RequestHandle>,
    ) -> Option<c_int> {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let inside = crossing::enter();
            let buffers = [devices::Buffer::new(sendbuf, devices::BufferUse::In, if steps::is_member(root, comm) { devices::once(sendcount, sendtype) } else { Vec::new() }), devices::Buffer::new(
                recvbuf,
                devices::BufferUse::Out,
                if steps::is_root(root, comm) { devices::listed(
                    steps::peers(comm),
                    recvcounts,
                    displs,
                    recvtype,
                ) } else { Vec::new() },
            )];
            let staged = match devices::Staged::new(comm, c"MPI_Igatherv", false, buffers)? {
                Ok(staged) => staged,
                Err(code) => return Some(code),
            };
            drop(inside);
            let code = igatherv_converted(
                staged.at(0),
                sendcount,
                sendtype,
                staged.at(1),
                recvcounts,
                displs,
                recvtype,
                root,
                comm,
                request,
            );
            Some(staged.of_request(code, request))
        }
    }


    #[unsafe(export_name = "MPI_Igatherv")]
    unsafe extern "C" fn igatherv_given(
        sendbuf: *const c_void,
        sendcount: c_int,
        sendtype: DatatypeHandle,
        recvbuf: *mut c_void,
        recvcounts: *const c_int,
        displs: *const c_int,
        recvtype: DatatypeHandle,
        root: c_int,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let sendtype = steps::significant(
                sendtype,
                HandleKind::Datatype,
                false,
                root,
                Handle::object(comm),
            );
            let recvtype = steps::significant(
                recvtype,
                HandleKind::Datatype,
                true,
                root,
                Handle::object(comm),
            );
            igatherv(
                sendbuf,
                sendcount,
                sendtype,
                recvbuf,
                recvcounts,
                displs,
                recvtype,
                root,
                comm,
                request,
            )
        }
    }
    export!(PMPI_Igatherv => igatherv_given);

    #[unsafe(export_name = "MPI_Igatherv_c")]
    unsafe extern "C" fn igatherv_large(
        sendbuf: *const c_void,
        sendcount: Count,
        sendtype: DatatypeHandle,
        recvbuf: *mut c_void,
        recvcounts: *const Count,
        displs: *const Count,
        recvtype: DatatypeHandle,
        root: c_int,
        comm: CommHandle,
        request: *mut RequestHandle,
    ) -> c_int {
        // SAFETY: the caller keeps to what MPI asks of its arguments.
        unsafe {
            let sendtype = steps::significant(
                sendtype,
                HandleKind::Datatype,
                false,
                root,
                Handle::object(comm),
            );
            let recvtype = steps::significant(
                recvtype,
                HandleKind::Datatype,
                true,
                root,
                Handle::object(comm),
            );
            let Some(narrow_sendcount) = large::Typed::new(sendcount, sendtype) else {
                return large::too_large(c"MPI_Igatherv_c");
            };
            let Some(narrow_recvcounts) = large::Ints::new(
                recvcounts,
                large::processes(
                    Handle::object(comm),
                    |comm| if steps::is_root(root, comm) { steps::peers(comm) } else { 0 },
                ),
            ) else {
                return large::too_large(c"MPI_Igatherv_c");
            };
            let Some(narrow_displs) = large::Ints::new(
                displs,
                large::processes(
                    Handle::object(comm),
                    |comm| if steps::is_root(root, comm) { steps::peers(comm) } else { 0 },
                ),
            ) else {
                return large::too_large(c"MPI_Igatherv_c");
            };
            let code = igatherv_converted(
                sendbuf,
                narrow_sendcount.count(),
                Handle::object(narrow_sendcount.datatype()),
                recvbuf,
                narrow_recvcounts.list(),
                narrow_displs.list(),
                Handle::object(recvtype),
                root,
                Handle::object(comm),
                PlaceOf::at(request),
            );
            if code == 0 {
                large::keep(PlaceOf::at(request), vec![narrow_recvcounts, narrow_displs]);
            }
            code
        }
    }
    export!(PMPI_Igatherv_c => igatherv_large);
}

