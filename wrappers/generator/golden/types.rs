// @generated in every build by wrappers/generator, from wrappers/table and wrappers/abi.

/// `MPI_Comm`.
pub type Comm = *mut Object;
/// `MPI_Group`.
pub type Group = *mut Object;
/// `MPI_Datatype`.
pub type Datatype = *mut Object;
/// `MPI_Op`.
pub type Op = *mut Object;
/// `MPI_Request`.
pub type Request = *mut Object;
/// `MPI_Errhandler`.
pub type Errhandler = *mut Object;
/// `MPI_Info`.
pub type Info = *mut Object;
/// `MPI_Message`.
pub type Message = *mut Object;
/// `MPI_Win`.
pub type Win = *mut Object;
/// `MPI_File`.
pub type File = *mut Object;
/// `MPI_Aint`.
pub type Aint = isize;
/// `MPI_Count`.
pub type Count = i64;
/// `MPI_Offset`.
pub type Offset = i64;
/// `MPI_Fint`.
pub type Fint = c_int;
