//! An answer of `Extra::pull` beyond 0 and 1.

/// The real MPI finds the message again until its receive is over: no other may be looked for until then.
pub const ALONE: i32 = 2;
