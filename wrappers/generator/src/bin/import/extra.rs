//! Functions that installed MPIs export but the standard's JSON does not contain: those that MPI-3.0 removed, and Open MPI's persistent collective operations
//! (`MPIX_`, from before MPI-4 adopted them).

use stillpoint_generator::table::{Function, read};

use crate::classified;

/// MPI 1.1's names, which `mpi.h` of Open MPI 4.1 still has.
const REMOVED: &str = "\
MPI_Address local absent code location:buffer address:aint>
MPI_Errhandler_create object absent code function:function:MPI_Handler_function errhandler:errhandler>
MPI_Errhandler_get object absent code comm:communicator errhandler:errhandler>
MPI_Errhandler_set object absent code comm:communicator errhandler:errhandler
MPI_Type_extent query absent code datatype:datatype extent:aint>
MPI_Type_hindexed object absent code count:int array_of_blocklengths:int[*] array_of_displacements:aint[*] oldtype:datatype newtype:datatype>
MPI_Type_hvector object absent code count:int blocklength:int stride:aint oldtype:datatype newtype:datatype>
MPI_Type_lb query absent code datatype:datatype displacement:aint>
MPI_Type_struct object absent code count:int array_of_blocklengths:int[*] array_of_displacements:aint[*] array_of_types:datatype[count] newtype:datatype>
MPI_Type_ub query absent code datatype:datatype displacement:aint>
";

/// Returns all functions beyond the standard; the extensions have the parameters of the standard's functions.
pub fn functions(standard: &[Function]) -> Vec<Function> {
    let removed = read(REMOVED).expect("the lines above are in the table's notation");
    let persistent = standard
        .iter()
        .filter(|function| crate::classes::is_persistent_collective(&function.name))
        .map(|function| Function {
            name: function.name.replace("MPI_", "MPIX_"),
            ..function.clone()
        });
    removed
        .into_iter()
        .chain(persistent)
        .map(classified)
        .collect()
}
