// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

use stillpoint_wrappers::gate::HandleKind;

use super::predefined::Symbol;

macro_rules! symbols {
    ($($name:ident: $bytes:literal,)*) => {
        $(#[allow(non_upper_case_globals)] // Open MPI's name, looked up by the dynamic linker.
            #[unsafe(no_mangle)]
            pub static $name: Symbol<$bytes> = Symbol::new();)*

        /// Where the symbols are, in the order of `PREDEFINED`.
        pub static ADDRESSES: [super::predefined::Address; 7] =
        [$(super::predefined::Address::of(&$name)),*];
    };
}

symbols! {
    ompi_mpi_comm_null: 512,
    ompi_mpi_comm_world: 512,
    ompi_mpi_comm_self: 512,
    ompi_mpi_errhandler_null: 1024,
    ompi_mpi_errors_are_fatal: 1024,
    ompi_mpi_errors_return: 1024,
    ompi_mpi_errors_throw_exceptions: 1024,
}

/// The object of a predefined handle that is a number: here none is.
#[inline(always)]
pub fn numbered(_kind: HandleKind, _number: i32) -> *mut super::Object {
    core::ptr::null_mut()
}
