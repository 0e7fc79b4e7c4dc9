//! Injected faults, and processes that die.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use stillpoint_tests::gpu::Node;
use stillpoint_tests::{Failed, ensure};

use super::holder::{Holder, held, same};
use super::{HELD, MANAGED, MEMORY, PATIENCE, TABLE, tested};

#[test]
fn faults_come_when_they_are_asked_for() {
    held("gpu-faults", &Node::of(1, MEMORY), |gpus, _, holder| {
        let once = |name: &str| gpus.fault(name, Some(1));
        once("lock-timeout")?;
        same(
            &holder.asked(&["lock=200"])?,
            &["lock: CUDA_ERROR_NOT_READY"],
        )?;
        same(&holder.asked(&["lock=5000"])?, &["lock: CUDA_SUCCESS"])?;
        once("checkpoint-fails")?;
        same(
            &holder.asked(&["checkpoint"])?,
            &["checkpoint: CUDA_ERROR_OPERATING_SYSTEM"],
        )?;
        same(
            &holder.asked(&["checkpoint"])?,
            &["checkpoint: CUDA_SUCCESS"],
        )?;
        for (fault, name) in [
            ("restore-fails", "CUDA_ERROR_OPERATING_SYSTEM"),
            ("out-of-memory", "CUDA_ERROR_OUT_OF_MEMORY"),
            ("copy-error", "CUDA_ERROR_ECC_UNCORRECTABLE"),
        ] {
            once(fault)?;
            let right = format!("restore: {name}");
            same(&holder.asked(&["restore"])?, &[&right])?;
            let lines = holder.asked(&["state"])?;
            same(&lines, &["state is 2", "state: CUDA_SUCCESS"])?;
        }
        same(
            &holder.asked(&["restore", "unlock"])?,
            &["restore: CUDA_SUCCESS", "unlock: CUDA_SUCCESS"],
        )?;
        holder.ends_well()
    });
}

#[test]
fn an_error_under_way_stays_with_the_process() {
    held("gpu-lost", &Node::of(1, MEMORY), |gpus, _, holder| {
        gpus.fault("device-lost-0", None)?;
        let ended = holder.job.end(PATIENCE)?;
        let said = ended.stderr.contains("CUDA_ERROR_UNKNOWN");
        ensure!(said && ended.status != 0, "{}", ended.show());
        gpus.no_fault("device-lost-0")
    });
}

#[test]
fn what_breaks_is_lost_for_good() {
    let steps = ["lock=5000", "checkpoint", "restore"];
    for (fault, good) in [("checkpoint-breaks", 1), ("restore-breaks", 2)] {
        held(fault, &Node::of(1, MEMORY), |gpus, _, holder| {
            gpus.fault(fault, Some(1))?;
            let mut right: Vec<String> = steps[..good]
                .iter()
                .map(|step| format!("{step}: CUDA_SUCCESS"))
                .collect();
            right.push(format!("{}: CUDA_ERROR_UNKNOWN", steps[good]));
            let right: Vec<String> = right.iter().map(|line| line.replace("=5000", "")).collect();
            let lines = holder.asked(&steps)?;
            ensure!(lines == right, "{lines:#?} and not {right:#?}");
            let ended = holder.job.end(PATIENCE)?;
            ensure!(ended.status != 0, "{}", ended.show());
            Ok(())
        });
    }
}

#[test]
fn what_a_dead_process_had_is_free() {
    tested("gpu-dead", &Node::of(1, MEMORY), |gpus, directory| {
        let holder = Holder::start(gpus, directory)?;
        let free = |lines: &[String]| -> Result<u64, Failed> {
            let number = lines.iter().find_map(|line| line.strip_prefix("free are "));
            let number = number.and_then(|number| number.parse().ok());
            number.ok_or_else(|| format!("no number in {lines:?}"))
        };
        let pid = holder.job.id();
        ensure!(
            free(&holder.asked(&["free=0"])?)? == MEMORY - HELD - TABLE - MANAGED,
            "{:?}",
            holder.asked(&["free=0"])
        );
        kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|error| error.to_string())?;
        // The device notices by itself after a while.
        let started = Instant::now();
        while free(&holder.asked(&["free=0"])?)? != MEMORY {
            ensure!(started.elapsed() < PATIENCE, "its memory is still in use");
        }
        let lines = holder.asked(&["state"])?;
        ensure!(
            lines
                .last()
                .is_some_and(|line| line.contains("INVALID_VALUE")),
            "{lines:?}"
        );
        Ok(())
    });
}
