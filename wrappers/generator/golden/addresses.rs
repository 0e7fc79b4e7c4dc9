// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use core::ffi::c_void;

use crate::mpi::library::Address;

macro_rules! symbols {
    ($($name:ident,)*) => {
        unsafe extern "C" { $(static $name: c_void;)* }

        /// Where the symbols are, in the order of `PREDEFINED`.
        pub static ADDRESSES: [Address; 7] =
        [$(Address::of(&raw const $name)),*];
    };
}

symbols! {
    ompi_mpi_comm_null,
    ompi_mpi_comm_world,
    ompi_mpi_comm_self,
    ompi_mpi_errhandler_null,
    ompi_mpi_errors_are_fatal,
    ompi_mpi_errors_return,
    ompi_mpi_errors_throw_exceptions,
}
