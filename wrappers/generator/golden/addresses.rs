// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use crate::mpi::library::Address;

core::arch::global_asm!(
    ".pushsection .data.rel.ro.stillpoint_predefined, \"aw\", @progbits",
    ".balign 8",
    ".globl stillpoint_predefined",
    ".hidden stillpoint_predefined",
    "stillpoint_predefined:",
    ".weak ompi_mpi_comm_null",
    ".quad ompi_mpi_comm_null",
    ".weak ompi_mpi_comm_world",
    ".quad ompi_mpi_comm_world",
    ".weak ompi_mpi_comm_self",
    ".quad ompi_mpi_comm_self",
    ".weak ompi_mpi_errhandler_null",
    ".quad ompi_mpi_errhandler_null",
    ".weak ompi_mpi_errors_are_fatal",
    ".quad ompi_mpi_errors_are_fatal",
    ".weak ompi_mpi_errors_return",
    ".quad ompi_mpi_errors_return",
    ".weak ompi_mpi_errors_throw_exceptions",
    ".quad ompi_mpi_errors_throw_exceptions",
    ".popsection",
);

unsafe extern "C" {
    /// Where the symbols are, in the order of `PREDEFINED`.
    #[link_name = "stillpoint_predefined"]
    pub safe static ADDRESSES: [Address; 7];
}
