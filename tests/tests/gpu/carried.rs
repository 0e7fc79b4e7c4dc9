//! Device memory is carried through checkpoints and restarts.

use stillpoint_tests::command::exit;
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

use crate::heat::{self, Heat, LONG, node};

/// Checkpoints a job and lets it carry on, then suspends and restarts it three times.
pub fn again_and_again(heat: &Heat, options: &[&str]) -> Result<(), Failed> {
    let natively = heat.natively()?;
    let mut job = heat.start(options)?;
    for _ in 0..2 {
        heat.checkpoint()?.expect(exit::DONE)?;
    }
    for _ in 0..3 {
        heat.suspend(job)?;
        job = heat.restarted()?;
    }
    heat.checkpoint()?.expect(exit::DONE)?;
    heat.ends_as(job, &natively)
}

#[test]
fn four_ranks_with_a_gpu_each_carry_on_and_restart() {
    heat::on(&node(4), 4, LONG, |heat| again_and_again(heat, &[]));
}

#[test]
fn four_ranks_that_share_two_gpus_carry_on_and_restart() {
    heat::on(&node(2), 4, LONG, |heat| {
        again_and_again(heat, &["--copy", "off"])
    });
}

/// Writes of a device to host memory cause no page fault.
#[test]
fn increments_hold_what_devices_have_written() {
    heat::on(&node(2), 3, LONG, |heat| {
        again_and_again(heat, &["--incremental"])
    });
}

#[test]
fn the_application_runs_on_while_its_image_is_written() {
    heat::on(&node(2), 2, LONG, |heat| {
        again_and_again(heat, &["--copy", "on"])
    });
}

/// Another node's GPUs of the same kind replace the earlier ones, whatever their uuids.
#[test]
fn other_gpus_of_the_same_kind_are_taken() {
    heat::on(&node(3), 3, LONG, |heat| {
        let natively = heat.natively()?;
        let job = heat.start(&[])?;
        heat.suspend(job)?;
        let mut other = node(4);
        for (number, device) in other.devices.iter_mut().enumerate() {
            device.uuid = [0xa0 + number as u8; 16];
        }
        heat.gpus = stillpoint_tests::gpu::Gpus::start(&other)?;
        let job = heat.restarted()?;
        heat.checkpoint()?.expect(exit::DONE)?;
        heat.suspend(job)?;
        let job = heat.restarted()?;
        heat.ends_as(job, &natively)
    });
}

/// A new helper replaces one that has died.
#[test]
fn one_helper_serves_a_node() {
    heat::on(&Node::of(1, 1 << 30), 2, LONG, |heat| {
        let natively = heat.natively()?;
        let mut job = heat.start(&[])?;
        ensure!(
            heat.helpers(&job).is_empty(),
            "a helper before there is a checkpoint"
        );
        heat.checkpoint()?.expect(exit::DONE)?;
        // Until then the helper holds the staged memory.
        heat.idle(&mut job)?;
        heat.end_helper(&job)?;
        // A new helper takes its place.
        heat.checkpoint()?.expect(exit::DONE)?;
        let helpers = heat.helpers(&job);
        ensure!(helpers.len() == 1, "{helpers:?}");
        heat.ends_as(job, &natively)
    });
}

/// No helper stays behind.
#[test]
fn a_helper_that_nobody_needs_ends() {
    heat::on(&node(1), 1, 10, |heat| {
        let mut command = std::process::Command::new(
            stillpoint_tests::place::stillpoint()?.with_file_name("stillpoint-gpu"),
        );
        command.args(["--serve", "stillpoint-test-of-a-helper-alone"]);
        heat.gpus.reach(&mut command)?;
        let answer = stillpoint_tests::command::run(command, heat.directory, heat::PATIENCE)?;
        answer.expect(exit::DONE).map(drop)
    });
}

/// A job without GPUs pays for none, even on a node with GPUs, neither at a checkpoint nor at a restart.
#[test]
fn a_job_without_gpus_starts_no_helper() {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new("gpu-less")?.run(|directory| {
            let gpus = Gpus::start(&node(2))?;
            let trial = Trial::new(&program, 2, directory)?;
            let none = |job: &Job| {
                let helpers = job.processes("stillpoint-gpu");
                ensure!(helpers.is_empty(), "helpers: {helpers:?}");
                Ok::<(), Failed>(())
            };
            let mut command = job::under_stillpoint(2, &trial.epochs_at())?;
            command.arg(trial.executable());
            gpus.reach(&mut command)?;
            let mut job: Job = trial.launch(command)?;
            trial.ready(&mut job)?;
            stillpoint_tests::command::checkpoint(directory, &trial.epochs_at())?
                .expect(exit::DONE)?;
            none(&job)?;
            trial.suspended(job)?;
            let mut command = job::restarted(2, &trial.epochs_at())?;
            gpus.reach(&mut command)?;
            let mut job = trial.launch(command)?;
            trial.runs_again(&mut job)?;
            stillpoint_tests::command::checkpoint(directory, &trial.epochs_at())?
                .expect(exit::DONE)?;
            none(&job)?;
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
