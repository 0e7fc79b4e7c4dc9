//! What `Extra::pull` says of a message beyond that there is one.

/// The real MPI finds the message again until its receive is over: no other may be looked for until then.
pub const ALONE: i32 = 2;
