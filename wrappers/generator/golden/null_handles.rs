// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

/// Standard-ABI value of a kind's null handle (MPI 5.0, section 20.4).
pub const fn null_handle(kind: HandleKind) -> i32 {
    match kind {
        HandleKind::Communicator => 256, // MPI_COMM_NULL
        HandleKind::Group => 264, // MPI_GROUP_NULL
        HandleKind::Datatype => 512, // MPI_DATATYPE_NULL
        HandleKind::Operator => 32, // MPI_OP_NULL
        HandleKind::Request => 384, // MPI_REQUEST_NULL
        HandleKind::Errhandler => 320, // MPI_ERRHANDLER_NULL
        HandleKind::Info => 304, // MPI_INFO_NULL
        HandleKind::Message => 296, // MPI_MESSAGE_NULL
        HandleKind::Window => 272, // MPI_WIN_NULL
        HandleKind::File => 280, // MPI_FILE_NULL
        HandleKind::Session => 288, // MPI_SESSION_NULL
    }
}
