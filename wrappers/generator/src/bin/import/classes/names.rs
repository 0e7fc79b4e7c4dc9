//! Functions by their stem: lists that do not follow from rules.

/// The collective operations by their stem, as in `MPI_Bcast`, `MPI_Ibcast`, `MPI_Bcast_init`.
pub const COLLECTIVES: [&str; 22] = [
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Barrier",
    "Bcast",
    "Exscan",
    "Gather",
    "Gatherv",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
    "Reduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Scatter",
    "Scatterv",
];

/// Names of the standard (or of MPI-1) that installed MPIs of the 3.1 level do not export.
pub const ABSENT: [&str; 21] = [
    "Abi_",
    "Aint_",
    "Session_",
    "Buffer_",
    "Isendrecv",
    "P", // Parrived, Pready..., Psend_init, Precv_init
    "Remove_error_",
    "T_event_",
    "T_source_",
    "Status_get_",
    "Status_set_",
    "Comm_attach_buffer",
    "Comm_detach_buffer",
    "Comm_flush_buffer",
    "Comm_iflush_buffer",
    "Get_hw_resource_info",
    "Comm_create_from_group",
    "Comm_idup_with_info",
    "Info_create_env",
    "Info_get_string",
    "Intercomm_create_from_groups",
];

/// One-sided operations.
pub const ONE_SIDED: [&str; 10] = [
    "Put",
    "Get",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
    "Rput",
    "Rget",
    "Raccumulate",
    "Rget_accumulate",
];

/// Functions by which processes that were not started together find each other.
pub const DYNAMIC: [&str; 7] = [
    "Comm_accept",
    "Comm_connect",
    "Comm_join",
    "Comm_get_parent",
    "Publish_name",
    "Unpublish_name",
    "Lookup_name",
];

/// Functions that complete requests or start them.
pub const COMPLETION: [&str; 5] = [
    "Cancel",
    "Start",
    "Startall",
    "Grequest_start",
    "Grequest_complete",
];

/// Functions about the process as a whole.
pub const ENVIRONMENT: [&str; 16] = [
    "Init",
    "Init_thread",
    "Finalize",
    "Initialized",
    "Finalized",
    "Abort",
    "Query_thread",
    "Is_thread_main",
    "Alloc_mem",
    "Free_mem",
    "Get_processor_name",
    "Get_hw_resource_info",
    "Add_error_class",
    "Add_error_code",
    "Add_error_string",
    "Pcontrol",
];

/// Functions that involve no other process.
pub const LOCAL: [&str; 24] = [
    "Wtime",
    "Wtick",
    "Get_address",
    "Address",
    "Aint_add",
    "Aint_diff",
    "Get_count",
    "Get_elements",
    "Get_elements_x",
    "Pack",
    "Unpack",
    "Pack_size",
    "Pack_external",
    "Unpack_external",
    "Pack_external_size",
    "Dims_create",
    "Get_version",
    "Get_library_version",
    "Test_cancelled",
    "Reduce_local",
    "Error_class",
    "Error_string",
    "Sizeof",
    "F_sync_reg",
];
