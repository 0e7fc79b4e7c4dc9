//! The export of a stub: as `MPI_X`, which is its own name, and as `PMPI_X`, which jumps there.
//!
//! Applications call `MPI_X`, which so has no code but its own. A tool may bring its own `MPI_X` and call `PMPI_X`: it gets here,
//! because the library is linked so that a jump to one of its functions leads to that function, even if other objects have the same name (`build.rs`).

/// `export!(PMPI_X => stub)`.
macro_rules! export {
    ($name:ident => $stub:path) => {
        // SAFETY: the name is MPI's, and this library stands in MPI's place; the jump keeps registers and stack as
        // the caller has set them up for the stub.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(non_snake_case)] // MPI's name.
        pub unsafe extern "C" fn $name() {
            $crate::ground::arch::go_to!($stub)
        }
    };
}

pub(crate) use export;
