//! A library that is loaded at launch: its functions are looked up by name.
//!
//! * [`ffi`] - the functions, generated
//! * [`found`] - the addresses of the functions
//! * `handles` - handles that have fewer bits than a word
//! * `imports` - the functions that the library itself imports
//! * [`texts`] - results that are longer than the buffers of a program with another ABI

pub mod found;
#[cfg(library = "mpich")]
mod handles;
pub mod imports;
pub mod texts;

/// The functions.
#[allow(non_snake_case, reason = "MPI's names")]
pub mod ffi {
    use stillpoint_wrappers::neutral::Word as Handle;

    include!(concat!(env!("OUT_DIR"), "/ffi.rs"));

    /// `MPI_Aint`.
    #[allow(non_camel_case_types, reason = "MPI's name")]
    pub type MPI_Aint = isize;
    /// `MPI_Datatype`.
    #[allow(non_camel_case_types, reason = "MPI's name")]
    pub type MPI_Datatype = Handle;
    /// `MPI_Request`.
    #[allow(non_camel_case_types, reason = "MPI's name")]
    pub type MPI_Request = Handle;
}
