//! How a stub is exported: under its two names, each a jump to the one function that does the work.
//!
//! The names are not each other's alias: a tool that brings its own `MPI_X` and calls `PMPI_X` gets here.

/// `export!(MPI_X, PMPI_X => stub)`.
macro_rules! export {
    ($mpi:ident, $pmpi:ident => $stub:path) => {
        $crate::export::export!($mpi => $stub);
        $crate::export::export!($pmpi => $stub);
    };
    ($name:ident => $stub:path) => {
        // SAFETY: the name is MPI's, and this library stands in MPI's place; the jump keeps registers and stack as
        // the caller has set them up for the stub.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(non_snake_case)] // MPI's name.
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!("jmp {stub}", stub = sym $stub)
        }
    };
}

pub(crate) use export;
