//! Things of MPI programs that need no message: groups, datatypes, operators, infos, error handlers, attributes, and the facts about a
//! communicator. A restart makes each again from its recipe.

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
pub mod rehearsal_outcome;
