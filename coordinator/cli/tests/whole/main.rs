//! The coordinator and the command, whole: real processes, sockets and files.

mod command;
mod fenced;
mod records;
mod support;
mod transaction;
