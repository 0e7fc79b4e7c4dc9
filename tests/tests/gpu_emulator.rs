//! The emulated driver by itself, without Stillpoint: what tests of GPU jobs build on.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use stillpoint_tests::command;
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

const MEMORY: u64 = 100 << 20;
/// What a holder has on each device: arrays, a table of them, and managed memory.
const HELD: u64 = 6 << 20;
const TABLE: u64 = 512;
const MANAGED: u64 = 65536;
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

/// A process that has memory on all devices and goes on changing it.
struct Holder<'a> {
    gpus: &'a Gpus,
    directory: &'a Directory,
    job: Job,
}

impl<'a> Holder<'a> {
    fn start(gpus: &'a Gpus, directory: &'a Directory) -> Result<Holder<'a>, Failed> {
        let mut command = Command::new(Program::named(Kind::Gpu, "holder")?.build()?);
        command
            .arg(HELD.to_string())
            .env("TRIAL_DIR", directory.path());
        gpus.reach(&mut command)?;
        let mut job = Job::start(command, directory)?;
        let ready = directory.file("ready.0");
        job.until("ready", PATIENCE, |_| ready.exists())?;
        Ok(Holder {
            gpus,
            directory,
            job,
        })
    }

    /// What another process's driver says to some commands: all of its lines.
    fn asked(&self, commands: &[&str]) -> Result<Vec<String>, Failed> {
        self.asked_of(self.gpus, commands)
    }

    /// The same with the devices of another folder.
    fn asked_of(&self, gpus: &Gpus, commands: &[&str]) -> Result<Vec<String>, Failed> {
        let mut command = Command::new(Program::named(Kind::Gpu, "checkpointer")?.build()?);
        command.arg(self.job.id().to_string()).args(commands);
        gpus.reach(&mut command)?;
        let answer = command::run(command, self.directory, PATIENCE)?;
        ensure!(matches!(answer.status, 0 | 1), "{}", answer.show());
        Ok(answer.stdout.lines().map(str::to_owned).collect())
    }

    /// Lets it come to its end, which must be good.
    fn ends_well(self) -> Result<(), Failed> {
        let go = self.directory.file("go");
        fs::write(&go, "").map_err(|error| format!("{}: {error}", go.display()))?;
        let ended = self.job.end(PATIENCE)?;
        ensure!(ended.stdout == "OK 0\n", "{}", ended.show());
        Ok(())
    }

    /// Lines of what it has open or mapped that speak of a device.
    fn of_devices(&self) -> Result<Vec<String>, Failed> {
        let process = format!("/proc/{}", self.job.id());
        let wrong = |error: std::io::Error| format!("{process}: {error}");
        let maps = fs::read_to_string(format!("{process}/maps")).map_err(wrong)?;
        let mut found: Vec<String> = maps.lines().map(str::to_owned).collect();
        for entry in fs::read_dir(format!("{process}/fd"))
            .map_err(wrong)?
            .flatten()
        {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            found.push(target.display().to_string());
        }
        found.retain(|line| line.contains("/dev/nvidia"));
        Ok(found)
    }
}

fn held(
    name: &str,
    node: &Node,
    test: impl FnOnce(&Gpus, &Directory, Holder) -> Result<(), Failed>,
) {
    tested(name, node, |gpus, directory| {
        test(gpus, directory, Holder::start(gpus, directory)?)
    });
}

/// Fails unless lines are as they must be.
fn same(lines: &[String], right: &[&str]) -> Result<(), Failed> {
    ensure!(lines == right, "{lines:#?} and not {right:#?}");
    Ok(())
}

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
                    "thread is cuda-EvtHandlr",
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
        // What is the same elsewhere takes it.
        let elsewhere = Gpus::start(&Node::of(2, MEMORY))?;
        let lines = holder.asked_of(&elsewhere, &["restore", "unlock"])?;
        same(&lines, &["restore: CUDA_SUCCESS", "unlock: CUDA_SUCCESS"])?;
        holder.ends_well()
    });
}

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
        // The device notices by itself, as it comes to it.
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

/// What the links' bandwidths ask for is what copies take: nothing of it depends on how quick the machine is.
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
        let _turn = Turn::take()?;
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
                // Rounded up for each portion of a megabyte.
                let portions = one.bytes.div_ceil(1 << 20) as f64;
                ensure!(
                    (exact..=exact + portions).contains(&(one.busy as f64)),
                    "{one:?}, and not {exact} ns"
                );
                ensure!(one.last - one.first >= one.busy, "{one:?} is too quick");
            }
            // Every byte's time has really gone by: two on one link, one after the other, and then the others.
            let least = Duration::from_nanos((2.0 * HELD as f64 / host * 1e9) as u64);
            ensure!(took >= least, "{took:?}, and not {least:?}");
            Ok(())
        })
    };
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}
