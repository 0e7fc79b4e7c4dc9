//! The emulated driver by itself, without Stillpoint: what tests of GPU jobs build on.

use std::time::Duration;

use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

const MEMORY: u64 = 100 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn tested(name: &str, node: &Node, test: impl FnOnce(&Gpus, &Directory) -> Result<(), Failed>) {
    let run = || {
        let _turn = Turn::take()?;
        let gpus = Gpus::start(node)?;
        Directory::new(name)?.run(|directory| test(&gpus, directory))
    };
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}

/// The digest that a heat program prints.
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
        for ranks in [2, 4, 4] {
            let digest = heat(gpus, directory, "heat", ranks, size)?;
            ensure!(digest == alone, "{digest} on {ranks} ranks, {alone} on one");
        }
        Ok(())
    });
}
