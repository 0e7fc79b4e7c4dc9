//! The emulated driver by itself, without Stillpoint: the base of the tests of GPU jobs.

#[path = "gpu_emulator/checkpoints.rs"]
mod checkpoints;
#[path = "gpu_emulator/faults.rs"]
mod faults;
#[path = "gpu_emulator/holder.rs"]
mod holder;

use std::process::Command;
use std::time::{Duration, Instant};

use stillpoint_tests::command;
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure};

const MEMORY: u64 = 100 << 20;
/// Bytes that a holder has on each device: arrays, a table of them, and managed memory.
const HELD: u64 = 6 << 20;
const TABLE: u64 = 512;
const MANAGED: u64 = 65536;
const PATIENCE: Duration = Duration::from_secs(60);

fn tested(name: &str, node: &Node, test: impl FnOnce(&Gpus, &Directory) -> Result<(), Failed>) {
    let run = || {
        let gpus = Gpus::start(node)?;
        Directory::new(name)?.run(|directory| test(&gpus, directory))
    };
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}

/// Returns the digest that a heat program prints.
fn heat(
    gpus: &Gpus,
    directory: &Directory,
    program: &str,
    ranks: u32,
    size: [&str; 3],
) -> Result<String, Failed> {
    let program = Program::named(Kind::Gpu, program)?.build()?;
    let mut command = job::mpirun(ranks);
    command.arg(program).args(size);
    gpus.reach(&mut command)?;
    let job = Job::start(command, directory)?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "{}", ended.show());
    let digest = ended
        .stdout
        .lines()
        .find(|line| line.starts_with("digest "));
    let digest = digest.ok_or_else(|| format!("no digest: {}", ended.show()))?;
    Ok(digest.to_owned())
}

#[test]
fn the_field_is_the_same_however_it_is_shared() {
    tested("gpu-heat", &Node::of(2, MEMORY), |gpus, directory| {
        let size = ["60", "50", "40"];
        let alone = heat(gpus, directory, "heat", 1, size)?;
        for (program, ranks) in [("heat", 2), ("heat", 4), ("heat", 4), ("heat_cudarc", 4)] {
            let digest = heat(gpus, directory, program, ranks, size)?;
            ensure!(
                digest == alone,
                "{digest} with {program} on {ranks} ranks, {alone} on one"
            );
        }
        Ok(())
    });
}

#[test]
fn each_call_answers_as_it_must() {
    tested("gpu-calls", &Node::of(2, MEMORY), |gpus, directory| {
        let mut command = Command::new(Program::named(Kind::Gpu, "calls")?.build()?);
        gpus.reach(&mut command)?;
        let answer = command::run(command, directory, PATIENCE)?.expect(0)?;
        ensure!(answer.stdout == "OK 0\n", "{}", answer.show());
        Ok(())
    });
}

/// Copies take exactly the time that the links' bandwidths give, whatever the speed of the machine.
#[test]
fn copies_take_their_time_on_the_links() {
    let (host, peer) = (50e6, 20e6);
    let mut node = Node::of(3, MEMORY);
    node.devices
        .iter_mut()
        .for_each(|device| device.host = Some(host));
    // Devices 0 and 1 are linked, and 2 is reached over the host.
    node.links.retain(|link| link.between == [0, 1]);
    node.links[0].bandwidth = Some(peer);
    let run = || {
        let mut gpus = Gpus::start(&node)?;
        Directory::new("gpu-links")?.run(|directory| {
            let mut command = Command::new(Program::named(Kind::Gpu, "traffic")?.build()?);
            command.arg(HELD.to_string());
            gpus.reach(&mut command)?;
            let started = Instant::now();
            command::run(command, directory, PATIENCE)?.expect(0)?;
            let took = started.elapsed();
            let traffic = gpus.traffic()?;
            let ways: Vec<(&str, &str, u64)> = traffic
                .iter()
                .map(|one| (one.from.as_str(), one.to.as_str(), one.bytes / HELD))
                .collect();
            // To 0 by two streams, from there to 1 and to 2, and from all to the host.
            let right = [
                ("host", "0", 2),
                ("host", "2", 1),
                ("0", "host", 2),
                ("1", "host", 1),
                ("2", "host", 1),
                ("0", "1", 1),
            ];
            ensure!(ways == right, "{ways:?} and not {right:?}");
            for one in &traffic {
                let rate = if one.to == "1" { peer } else { host };
                let exact = one.bytes as f64 / rate * 1e9;
                // The time is rounded up for each portion of a megabyte.
                let portions = one.bytes.div_ceil(1 << 20) as f64;
                ensure!(
                    (exact..=exact + portions).contains(&(one.busy as f64)),
                    "{one:?}, and not {exact} ns"
                );
                ensure!(one.last - one.first >= one.busy, "{one:?} is too quick");
            }
            // Every byte's time has really passed: two copies on one link, one after the other, and then the others.
            let least = Duration::from_nanos((2.0 * HELD as f64 / host * 1e9) as u64);
            ensure!(took >= least, "{took:?}, and not {least:?}");
            Ok(())
        })
    };
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}
