//! Ranks wait in tests of requests, on MPICH 5.0. `waits_mpich.rs` has the same on MPICH 4.0.

use stillpoint_tests::waiting::in_waits;

const NEWER: &str = "mpich";

#[test]
fn requests_of_which_some_are_over() {
    in_waits(NEWER, "waits_half_over", 8);
}

#[test]
fn every_call_that_waits() {
    in_waits(NEWER, "blocked_in_completion", 8);
}

#[test]
fn receives_that_come_to_their_end_meanwhile() {
    in_waits(NEWER, "posted_receive_completes_in_drain", 2);
}

#[test]
fn requests_of_which_one_has_failed() {
    in_waits(NEWER, "waits_half_failed", 9);
}
