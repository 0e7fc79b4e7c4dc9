//! Checkpoints of a process with memory on the devices: the result of each call, and the remaining memory.

use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::{Failed, ensure};

use super::holder::{held, same};
use super::{HELD, MANAGED, MEMORY, TABLE};

#[test]
fn a_checkpoint_leaves_nothing_of_the_devices() {
    held("gpu-host", &Node::of(2, MEMORY), |_, _, holder| {
        ensure!(
            holder.of_devices()?.len() >= 4,
            "it has only {:#?}",
            holder.of_devices()?
        );
        for _ in 0..3 {
            let steps = [
                "state",
                "thread",
                "lock=5000",
                "state",
                "checkpoint",
                "state",
            ];
            same(
                &holder.asked(&steps)?,
                &[
                    "state is 0",
                    "state: CUDA_SUCCESS",
                    "thread is cuda",
                    "thread: CUDA_SUCCESS",
                    "lock: CUDA_SUCCESS",
                    "state is 1",
                    "state: CUDA_SUCCESS",
                    "checkpoint: CUDA_SUCCESS",
                    "state is 2",
                    "state: CUDA_SUCCESS",
                ],
            )?;
            let left = holder.of_devices()?;
            ensure!(left.is_empty(), "it still has {left:#?}");
            let free = format!("free are {MEMORY}");
            same(
                &holder.asked(&["free=0", "restore", "unlock", "state"])?,
                &[
                    &free,
                    "free: CUDA_SUCCESS",
                    "restore: CUDA_SUCCESS",
                    "unlock: CUDA_SUCCESS",
                    "state is 0",
                    "state: CUDA_SUCCESS",
                ],
            )?;
        }
        holder.ends_well()
    });
}

#[test]
fn each_state_allows_what_it_must() {
    held("gpu-states", &Node::of(1, MEMORY), |_, _, holder| {
        let refused = |commands: &[&str]| -> Result<(), Failed> {
            for command in commands {
                let said = holder.asked(&[command])?;
                let right = format!("{command}: CUDA_ERROR_ILLEGAL_STATE");
                ensure!(said == [right], "{said:?}");
            }
            Ok(())
        };
        let does = |command: &str| {
            let said = holder.asked(&[command])?;
            ensure!(said == [format!("{command}: CUDA_SUCCESS")], "{said:?}");
            Ok(())
        };
        refused(&["checkpoint", "restore", "unlock"])?;
        does("lock")?;
        refused(&["lock", "restore"])?;
        does("checkpoint")?;
        refused(&["lock", "checkpoint", "unlock"])?;
        does("restore")?;
        refused(&["lock", "restore"])?;
        does("unlock")?;
        holder.ends_well()
    });
}

#[test]
fn custom_storage_goes_through_the_caller() {
    held(
        "gpu-custom",
        &Node::of(2, MEMORY),
        |_, directory, holder| {
            let file = directory.file("memory");
            let (save, load) = (
                format!("save={}", file.display()),
                format!("load={}", file.display()),
            );
            for _ in 0..2 {
                let lines = holder.asked(&["lock=5000", &save, "state"])?;
                let held = |device: u32| format!("device {device}: {} bytes", HELD + TABLE);
                same(
                    &lines,
                    &[
                        "lock: CUDA_SUCCESS",
                        &held(0),
                        &held(1),
                        "save: CUDA_SUCCESS",
                        "state is 2",
                        "state: CUDA_SUCCESS",
                    ],
                )?;
                let left = holder.of_devices()?;
                ensure!(left.is_empty(), "it still has {left:#?}");
                let free = format!("free are {MEMORY}");
                let lines = holder.asked(&["free=1", &load, "unlock"])?;
                let (first, last) = lines.split_at(1);
                same(first, &[&free])?;
                same(
                    last,
                    &[
                        "free: CUDA_SUCCESS",
                        &held(0),
                        &held(1),
                        "load: CUDA_SUCCESS",
                        "unlock: CUDA_SUCCESS",
                    ],
                )?;
            }
            holder.ends_well()
        },
    );
}

#[test]
fn without_custom_storage_the_process_runs_on() {
    let mut node = Node::of(1, MEMORY);
    (node.custom_storage, node.cuda) = (false, 13030);
    held("gpu-no-custom", &node, |_, _, holder| {
        same(
            &holder.asked(&["lock=5000", "save=/dev/null"])?,
            &["lock: CUDA_SUCCESS", "save: CUDA_ERROR_NOT_SUPPORTED"],
        )?;
        same(&holder.asked(&["unlock"])?, &["unlock: CUDA_SUCCESS"])?;
        holder.ends_well()
    });
}

#[test]
fn managed_memory_hinders_where_the_driver_says_so() {
    let mut node = Node::of(1, MEMORY);
    node.managed = false;
    held("gpu-no-managed", &node, |_, _, holder| {
        same(
            &holder.asked(&["lock=5000", "checkpoint"])?,
            &["lock: CUDA_SUCCESS", "checkpoint: CUDA_ERROR_NOT_SUPPORTED"],
        )?;
        same(&holder.asked(&["unlock"])?, &["unlock: CUDA_SUCCESS"])?;
        holder.ends_well()
    });
}

#[test]
fn devices_of_one_kind_take_each_others_place() {
    let mut node = Node::of(2, MEMORY);
    node.devices[1].memory = 2 * MEMORY;
    held("gpu-pairs", &node, |_, _, holder| {
        let steps = [
            "lock=5000",
            "checkpoint",
            "swap",
            "unlock",
            "free=0",
            "free=1",
        ];
        let lines = holder.asked(&steps)?;
        let free = |memory: u64| format!("free are {}", memory - HELD - TABLE - MANAGED);
        same(&lines[4..5], &[&free(MEMORY)])?;
        same(&lines[6..7], &[&free(2 * MEMORY)])?;
        holder.ends_well()
    });
}

#[test]
fn another_driver_and_another_chip_are_refused() {
    held("gpu-others", &Node::of(2, MEMORY), |_, _, holder| {
        holder.asked(&["lock=5000", "checkpoint"])?;
        let mut other = Node::of(2, MEMORY);
        other.driver = "616.01".to_owned();
        let gpus = Gpus::start(&other)?;
        let refused = |gpus: &Gpus, name: &str| {
            let right = format!("restore: {name}");
            same(&holder.asked_of(gpus, &["restore"])?, &[&right])
        };
        refused(&gpus, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")?;
        let mut other = Node::of(2, MEMORY);
        other.devices[1].name = "Another GPU".to_owned();
        refused(
            &Gpus::start(&other)?,
            "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        )?;
        refused(
            &Gpus::start(&Node::of(1, MEMORY))?,
            "CUDA_ERROR_INVALID_DEVICE",
        )?;
        // Another node of the same kind takes the process.
        let elsewhere = Gpus::start(&Node::of(2, MEMORY))?;
        let lines = holder.asked_of(&elsewhere, &["restore", "unlock"])?;
        same(&lines, &["restore: CUDA_SUCCESS", "unlock: CUDA_SUCCESS"])?;
        holder.ends_well()
    });
}
