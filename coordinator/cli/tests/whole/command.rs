//! The `stillpoint` command as people and scripts use it: exit statuses, messages, JSON.
//!
//! A stand-in takes the place of the lower half, beside a copy of the command. It is this test program, started as a rank that has an agent and no
//! application.

mod carried;
mod directories;
mod house;
mod jobs;
mod mistakes;
mod schema;
mod stand_in;
mod words;
