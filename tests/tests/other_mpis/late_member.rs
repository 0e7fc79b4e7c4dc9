//! A checkpoint waits for no late member of a collective operation.

use stillpoint_tests::mpis::OWN;
use stillpoint_tests::waiting::late_member as each;

const DEBIAN: &str = "mpich-debian";
const NEWER: &str = "mpich";
const INTEL: &str = "impi";

/// An operation of each kind, with its late rank, root, and number of elements.
const ALL: [[&str; 4]; 9] = [
    ["barrier", "1", "0", "40"],
    ["allreduce", "1", "0", "40"],
    ["alltoall", "0", "0", "400000"],
    ["bcast", "0", "0", "40"],
    ["exscan", "0", "0", "40"],
    ["split", "0", "0", "1"],
    ["finalize", "0", "0", "1"],
    ["several", "2", "0", "60"],
    ["behind", "1", "0", "40"],
];

#[test]
fn mpich_5_with_the_abi_of_the_standard() {
    each(NEWER, NEWER, &ALL);
    each(
        NEWER,
        NEWER,
        &[
            ["allreduce", "1", "0", "40", "threads"],
            ["bcast", "0", "0", "40", "threads"],
            ["allreduce", "0", "0", "42", "in_place"],
        ],
    );
}

#[test]
fn mpich_5_with_its_own_abi() {
    each(
        DEBIAN,
        NEWER,
        &[
            ["barrier", "1", "0", "40"],
            ["allreduce", "1", "0", "40"],
            ["behind", "1", "0", "40"],
        ],
    );
    each(DEBIAN, NEWER, &[["allreduce", "1", "0", "40", "threads"]]);
}

#[test]
fn programs_of_open_mpi_on_mpich_5() {
    each(
        OWN,
        NEWER,
        &[
            ["allreduce", "1", "0", "40"],
            ["finalize", "0", "0", "1"],
            ["behind", "1", "0", "40"],
        ],
    );
}

#[test]
fn intel_mpi() {
    let cases = [
        ["barrier", "1", "0", "40"],
        ["allreduce", "1", "0", "40"],
        ["alltoall", "0", "0", "400000"],
        ["bcast", "0", "0", "40"],
        ["split", "0", "0", "1"],
        ["several", "2", "0", "60"],
        ["behind", "1", "0", "40"],
    ];
    each(DEBIAN, INTEL, &cases);
    each(NEWER, INTEL, &cases[..2]);
    each(OWN, INTEL, &cases[..2]);
    each(
        DEBIAN,
        INTEL,
        &cases.map(|[name, late, root, count]| [name, late, root, count, "threads"]),
    );
}

/// Builds in between, which yield only on request.
#[test]
fn mpich_4_1() {
    between("mpich-4.1");
}

#[test]
fn mpich_4_2() {
    between("mpich-4.2");
}

#[test]
fn mpich_4_3() {
    between("mpich-4.3");
}

fn between(on: &str) {
    each(DEBIAN, on, &ALL);
    each(
        DEBIAN,
        on,
        &[
            ["barrier", "1", "0", "40", "threads"],
            ["allreduce", "1", "0", "40", "threads"],
            ["alltoall", "0", "0", "400000", "threads"],
            ["bcast", "0", "0", "40", "threads"],
            ["behind", "1", "0", "40", "threads"],
            ["allreduce", "0", "0", "42", "in_place"],
        ],
    );
    each(OWN, on, &[["allreduce", "1", "0", "40"]]);
}
