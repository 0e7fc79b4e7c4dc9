//! Directories of one user, and the only way to open what is in them.
//!
//! A checkpoint directory holds files that a restart runs with its caller's rights, and files that a coordinator overwrites and removes. So everything below
//! it, below the registry and below a fast tier is opened, made, renamed and removed here. A test of this crate searches the sources for any other way:
//!
//! * A directory that is worked in belongs to its user: no other user owns it or may write to it ([`RequiredOwner::Ours`]).
//! * It is held by a descriptor ([`Directory`]). If it is moved or removed and another one is made under its name, the other one is left alone.
//! * A file is a regular file: no link is followed, and no open waits for the other end of a FIFO.
//! * Reading a whole file has a limit.

#![forbid(unsafe_code)]

mod directory;
mod entries;
mod file;
mod numbers;

pub use directory::{Directory, RequiredOwner};
pub use entries::make_all as make_shared;
pub use file::{create, open, open_or_create, overwrite, read, rewrite, scratch, stored_bytes};
pub use numbers::number_from;
