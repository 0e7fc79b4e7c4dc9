//! The coordinator and the command, whole: real processes, sockets and files.

mod command;
mod support;
mod transaction;
