//! Ranks wait in the real MPI's own functions, on MPICH 4.0, which makes callbacks while it waits. Checkpoints come one after the other; the job carries on
//! from some of them, and is restarted from others, on another MPI too. `programs.rs` has the same programs on the machine's own, `other_mpis` on MPICH 5.0.

use stillpoint_tests::waiting::in_waits;

const DEBIAN: &str = "mpich-debian";

#[test]
fn requests_of_which_some_are_over() {
    in_waits(DEBIAN, "waits_half_over", 8);
}

#[test]
fn every_call_that_waits() {
    in_waits(DEBIAN, "blocked_in_completion", 8);
}

#[test]
fn receives_that_come_to_their_end_meanwhile() {
    in_waits(DEBIAN, "posted_receive_completes_in_drain", 2);
}

#[test]
fn requests_of_which_one_has_failed() {
    in_waits(DEBIAN, "waits_half_failed", 9);
}

/// Not on MPICH 5.0, which cancels a send and so ends programs natively too.
#[test]
fn windows_of_which_half_is_begun_later() {
    in_waits(DEBIAN, "requests_in_windows", 2);
}
