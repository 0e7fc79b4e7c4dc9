//! Programs that use the driver in special ways: kinds of memory, work under way, cudarc. Work that the driver cannot checkpoint is refused in the driver's
//! own words, and the job runs on.

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::ensure;
use stillpoint_tests::gpu::Node;

use crate::carried::again_and_again;
use crate::heat::{self, LONG, node};
use crate::running::on;

/// Checkpoints a job twice and moves it twice; it must end right, whether memory is staged or not.
fn carried(kind: &str) {
    for option in ["--gpu-staging=on", "--gpu-staging=off"] {
        on(&node(1), ("kinds", kind), |kinds| {
            let mut job = kinds.start(option)?;
            for _ in 0..2 {
                kinds.ask("checkpoint")?.expect(exit::DONE)?;
            }
            for _ in 0..2 {
                job = kinds.moved(job)?;
            }
            kinds.ask("checkpoint")?.expect(exit::DONE)?;
            kinds.ends_well(job).map(drop)
        });
    }
}

/// Kernels in streams that wait for each other, functions of the host, copies to pinned, registered and managed memory.
#[test]
fn work_under_way_and_every_kind_of_memory_are_carried() {
    carried("managed");
}

/// Some memory has several addresses, and some has none.
#[test]
fn memory_that_is_made_and_mapped_in_two_steps_is_carried() {
    carried("mapped");
}

/// Launched work is done before the devices are locked; captured work can still be launched after a restart.
#[test]
fn graphs_are_carried() {
    carried("graph");
}

/// Checks that a checkpoint is refused if the driver does not support the program's work; the job runs on to its end.
fn refused(node: &Node, kind: &str) {
    on(node, ("kinds", kind), |kinds| {
        let mut job = kinds.start("--gpu-staging=auto")?;
        for _ in 0..2 {
            let answer = kinds.ask("checkpoint")?;
            answer.expect_reason(exit::FAILED, "CUDA_ERROR_NOT_SUPPORTED")?;
        }
        ensure!(
            job.runs() && command::epochs(kinds.directory.epochs()).is_empty(),
            "{}",
            job.stderr()
        );
        kinds.ends_well(job).map(drop)
    });
}

#[test]
fn memory_that_processes_share_is_refused() {
    refused(&node(1), "shared");
}

#[test]
fn managed_memory_is_refused_by_a_driver_that_does_not_carry_it() {
    let mut other = node(1);
    other.managed = false;
    refused(&other, "managed");
}

/// The plate is the same as the C program's, and so is the result.
#[test]
fn heat_with_cudarc() {
    heat::on_with("heat_cudarc", &node(2), 2, LONG, |heat| {
        again_and_again(heat, &[])
    });
}
