//! The `stillpoint` command as people and scripts use it: exit statuses, messages, JSON.
//!
//! The lower half is a stand-in beside a copy of the command: this very test program, started as a rank
//! that has an agent and no application.

mod carried;
mod directories;
mod house;
mod jobs;
mod mistakes;
mod schema;
mod stand_in;
mod words;
