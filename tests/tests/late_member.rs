//! One member of a collective operation computes while all others are in it. A checkpoint waits for the late member only if
//! another one has gone past the operation and the late one has data to give to it.

use std::ffi::OsStr;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// An operation and its late rank, root, number of elements.
type Case<'a> = [&'a str; 4];

fn each<'a>(cases: impl IntoIterator<Item = Case<'a>>, test: fn(&Trial) -> Result<(), Failed>) {
    each_on(3, cases, test);
}

fn each_on<'a, const ARGUMENTS: usize>(
    ranks: u32,
    cases: impl IntoIterator<Item = [&'a str; ARGUMENTS]>,
    test: fn(&Trial) -> Result<(), Failed>,
) {
    for case in cases {
        let tested = (|| {
            let program = Program::named(Kind::Special, "late_member")?;
            Directory::new(&format!("late-{}-{}", case[0], case[1]))?
                .run(|directory| test(&Trial::new(&program, ranks, directory)?.with(&case)))
        })();
        if let Err(failed) = tested {
            panic!("{}: {failed}", case.join(" "));
        }
    }
}

/// The late member comes only after two suspends and restarts.
fn waits_for_nobody(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    trial.suspended(job)?;
    trial.suspended(trial.resumed()?)?;
    let job = trial.restarted()?;
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

/// The checkpoint has to wait, and the result is still right.
fn waits_for_the_late_one(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let target = trial.epochs_at();
    let request = ["checkpoint", "--timeout", "2"].map(OsStr::new);
    let answer = command::stillpoint(
        trial.directory,
        request.into_iter().chain([target.as_os_str()]),
    )?;
    ensure!(answer.status == exit::FAILED, "{}", answer.show());
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

/// The checkpoint has to wait, and names the rank that it waits for.
fn says_whom_it_waits_for(trial: &Trial) -> Result<(), Failed> {
    let mut job = trial.split()?;
    trial.ready(&mut job)?;
    let target = trial.epochs_at();
    let request = ["checkpoint", "--timeout", "3"].map(OsStr::new);
    let answer = command::stillpoint(
        trial.directory,
        request.into_iter().chain([target.as_os_str()]),
    )?;
    ensure!(answer.status == exit::FAILED, "{}", answer.show());
    for word in [
        "given up after 3 s in phase reach",
        "rank 2 computing, yet to come to what others have returned from on",
        "rank 1 in MPI_Allreduce",
        "rank 0 in MPI_Reduce",
    ] {
        ensure!(answer.stderr.contains(word), "'{word}': {}", answer.show());
    }
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

#[test]
fn operations_that_everybody_waits_in() {
    let all = [
        "barrier",
        "allgather",
        "allgatherv",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "allreduce",
        "reduce_scatter",
        "reduce_scatter_block",
    ];
    each(all.map(|name| [name, "1", "0", "40"]), waits_for_nobody);
}

#[test]
fn rooted_operations_that_begin_with_the_late_member() {
    let rooted = ["bcast", "scatter", "scatterv", "scan", "exscan"];
    each(rooted.map(|name| [name, "0", "0", "40"]), waits_for_nobody);
}

#[test]
fn neighbours_of_the_late_member() {
    let all = [
        "neighbor_allgather",
        "neighbor_allgatherv",
        "neighbor_alltoall",
        "neighbor_alltoallv",
        "neighbor_alltoallw",
    ];
    each(all.map(|name| [name, "0", "0", "8"]), waits_for_nobody);
}

#[test]
fn large_buffers() {
    let large = ["allreduce", "alltoall", "bcast"];
    each(
        large.map(|name| [name, "0", "0", "400000"]),
        waits_for_nobody,
    );
}

#[test]
fn making_communicators_and_the_end() {
    let calls = ["split", "dup", "create", "finalize"];
    each(calls.map(|name| [name, "0", "0", "1"]), waits_for_nobody);
}

#[test]
fn what_a_late_member_gives_nothing_to_is_carried_out_for_it() {
    each(
        [
            ["bcast", "2", "0", "40"],
            ["bcast", "0", "1", "0"],
            ["bcast", "1", "0", "400000"],
            ["scatter", "2", "0", "42"],
            ["scatter", "0", "2", "400002"],
            ["gather", "0", "0", "42"],
            ["gather", "2", "2", "400002"],
            ["gatherv", "1", "1", "42"],
        ],
        waits_for_nobody,
    );
}

#[test]
fn several_operations_are_carried_out_for_it() {
    each([["several", "2", "0", "60"]], waits_for_nobody);
}

/// One of the two late members gets from the root what the other one needs.
#[test]
fn several_members_are_late() {
    let late = ["1,2,3", "2,3", "1,3"];
    each_on(
        4,
        late.map(|late| ["bcast", late, "0", "40"]),
        waits_for_nobody,
    );
    each_on(4, [["scatter", "1,3", "0", "400"]], waits_for_nobody);
}

#[test]
fn a_member_that_waits_for_a_message_is_late_too() {
    each([["behind", "1", "0", "40"]], waits_for_nobody);
}

/// Many programs request several threads that call MPI, and have one.
#[test]
fn one_thread_where_several_may_call() {
    let threads = |case: [&'static str; 4]| [case[0], case[1], case[2], case[3], "threads"];
    let taken_back = ["allreduce", "barrier", "alltoall", "split", "finalize"];
    each_on(
        3,
        taken_back.map(|name| threads([name, "1", "0", "42"])),
        waits_for_nobody,
    );
    let ahead = ["bcast", "scatter", "several"];
    each_on(
        3,
        ahead.map(|name| threads([name, "2", "0", "42"])),
        waits_for_nobody,
    );
}

/// MPI may change the input meanwhile. Small input is copied before, on the stub's stack or on the heap, and put back. A scatter's input is not in the place of
/// its result.
#[test]
fn operations_in_place() {
    let kept = [
        "allgather",
        "allreduce",
        "alltoall",
        "exscan",
        "reduce_scatter_block",
        "scan",
    ];
    for elements in ["42", "3000"] {
        each_on(
            3,
            kept.map(|name| in_place(name, elements, "in_place")),
            waits_for_nobody,
        );
    }
    let others = [
        in_place("allgatherv", "3000", "in_place"),
        in_place("reduce_scatter", "3000", "in_place"),
        in_place("allgather", "42", "in_pairs"),
        in_place("alltoall", "42", "in_pairs"),
        in_place("scatter", "42", "in_place"),
        ["scatter", "1", "0", "42", "in_place"],
    ];
    each_on(3, others, waits_for_nobody);
}

/// The members meet before they begin, where the input is large or no member knows how large it is.
#[test]
fn operations_in_place_that_members_meet_for() {
    let met = [
        in_place("allgather", "30000", "in_place"),
        in_place("allgatherv", "30000", "in_place"),
        in_place("allreduce", "2000000", "in_place"),
        in_place("alltoall", "30000", "in_place"),
        in_place("alltoall", "30000", "in_pairs"),
        in_place("alltoallv", "42", "in_place"),
        in_place("alltoallw", "42", "in_place"),
        in_place("reduce_scatter_block", "30000", "in_place"),
    ];
    each_on(3, met, waits_for_nobody);
}

/// The first rank is late.
fn in_place<'a>(name: &'a str, elements: &'a str, how: &'a str) -> [&'a str; 5] {
    [name, "0", "0", elements, how]
}

/// In-place operations without a count for their input's size are not copied, nor are large ones in which not all members meet.
#[test]
fn operations_in_place_that_are_waited_for() {
    let waits = [
        ["scan", "30000"],
        ["exscan", "30000"],
        ["reduce_scatter", "30000"],
        ["gather", "42"],
    ];
    each_on(
        3,
        waits.map(|[name, elements]| [name, "1", "0", elements, "in_place"]),
        waits_for_the_late_one,
    );
}

#[test]
fn what_a_late_member_gives_something_to_is_waited_for() {
    each([["reduce", "2", "0", "40"]], says_whom_it_waits_for);
}
