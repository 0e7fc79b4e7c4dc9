//! Starts, checkpoints, suspends and restarts real `mpirun` jobs, and kills hanging ones.
//!
//! A test gets a directory of its own ([`place::Directory`]) and starts jobs ([`job::Job`]), which end with it in any
//! case. The output of the `stillpoint` command comes back as a [`command::Answer`].
//!
//! Each test has a process of its own. Results that several of them need are made once ([`kept`]).

pub mod broken;
pub mod chaos;
pub mod command;
pub mod gpu;
pub mod halves;
pub mod interrupt;
pub mod job;
pub mod kept;
pub mod late;
pub mod mpis;
pub mod network;
pub mod place;
pub mod program;
pub mod reason;
pub mod results;
pub mod seed;
pub mod strike;
pub mod trial;
pub mod user_space;
pub mod waiting;

/// The message of a failed test: everything that a person needs to see why.
pub type Failed = String;

/// Leaves the calling function with a failure unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}
