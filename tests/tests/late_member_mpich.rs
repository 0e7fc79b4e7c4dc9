//! One member of a collective operation computes while all others are in it, in MPICH. A checkpoint does not wait for it there either, a restart may be on Open
//! MPI, and the next one on MPICH again. `late_member.rs` has more operations, `other_mpis` has newer MPIs.

use stillpoint_tests::waiting::late_member;

/// Runs operations of a program of Debian's MPICH on that MPI.
fn each<const ARGUMENTS: usize>(operations: &[[&str; ARGUMENTS]]) {
    late_member("mpich-debian", "mpich-debian", operations);
}

#[test]
fn operations_that_everybody_waits_in() {
    each(&[
        ["barrier", "1", "0", "40"],
        ["allreduce", "1", "0", "40"],
        ["alltoallw", "1", "0", "40"],
        ["alltoall", "0", "0", "400000"],
    ]);
}

#[test]
fn operations_that_begin_with_the_late_member() {
    each(&[
        ["bcast", "0", "0", "40"],
        ["exscan", "0", "0", "40"],
        ["split", "0", "0", "1"],
        ["finalize", "0", "0", "1"],
    ]);
}

#[test]
fn what_is_carried_out_for_the_late_member() {
    each(&[["several", "2", "0", "60"]]);
}

#[test]
fn a_member_that_waits_for_a_message_is_late_too() {
    each(&[["behind", "1", "0", "40"]]);
}

#[test]
fn input_in_place() {
    each(&[
        ["allreduce", "0", "0", "42", "in_place"],
        ["scan", "0", "0", "3000", "in_place"],
        ["alltoall", "0", "0", "300000", "in_place"],
    ]);
}

#[test]
fn a_program_that_may_call_from_every_thread() {
    each(&[
        ["barrier", "1", "0", "40", "threads"],
        ["allreduce", "1", "0", "40", "threads"],
        ["alltoall", "0", "0", "400000", "threads"],
        ["bcast", "0", "0", "40", "threads"],
        ["split", "0", "0", "1", "threads"],
        ["several", "2", "0", "60", "threads"],
        ["behind", "1", "0", "40", "threads"],
    ]);
}
