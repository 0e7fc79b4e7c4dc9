//! What MPI programs hold that no message is needed for: groups, datatypes, operators, infos, error handlers, attributes, and what a
//! communicator is. Each knows how a restart makes it again.

pub mod attribute;
pub mod communicator;
pub mod datatype;
pub mod errhandler;
pub mod error_codes;
pub mod file;
pub mod group;
pub mod info;
pub mod memory;
pub mod operator;
pub mod outcome;
pub mod tried;
