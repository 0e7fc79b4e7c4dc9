//! Images staged on fast tiers, peers and the slow tier, under real jobs. Each rank is a node: it has a fast tier in a
//! directory of its own. Whatever is lost on the way, a restart is right, or is refused with a reason.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use stillpoint_protocol::Key;
use stillpoint_protocol::handshake::HandshakeError;
use stillpoint_protocol::peer::{Peer, PeerError};
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure, strike};

const PATIENCE: Duration = Duration::from_secs(40);

/// Two ranks, one of them too large for its own fast tier unless a test says otherwise.
struct Nodes<'a> {
    trial: Trial<'a>,
    /// Megabytes of each rank.
    sizes: [&'static str; 2],
    capacity: &'static str,
    /// Fields behind the slow tier's path.
    slow: &'static str,
    more: &'static [&'static str],
}

impl Nodes<'_> {
    fn target(&self) -> PathBuf {
        self.trial.epochs_at()
    }

    /// The fast tier of a rank.
    fn fast(&self, rank: u32) -> PathBuf {
        self.trial.directory.file(&format!("fast.{rank}"))
    }

    fn options(&self) -> Vec<String> {
        let fast = self.trial.directory.file("fast.%r");
        let mut options = vec![
            format!("--tier=fast={},capacity={}", fast.display(), self.capacity),
            format!("--tier=slow={}{}", self.target().display(), self.slow),
        ];
        options.extend(self.more.iter().map(|option| (*option).to_owned()));
        options
    }

    fn start(&self) -> Result<Job, Failed> {
        let mut command = job::mpirun(2);
        command.arg(place::stillpoint()?).arg("run");
        command.args(self.options()).arg("--");
        command.arg(self.trial.program.build()?).args(self.sizes);
        let mut job = self.trial.launch(command)?;
        self.trial.ready(&mut job)?;
        Ok(job)
    }

    /// Starts it again, without limits.
    fn restart(&self) -> Result<Job, Failed> {
        self.trial.restarted()
    }

    fn checkpoint(&self) -> Result<Answer, Failed> {
        let target = self.target();
        let words = ["checkpoint".as_ref(), "--json".as_ref(), target.as_os_str()];
        command::stillpoint(self.trial.directory, words)
    }

    fn status(&self) -> Result<Value, Failed> {
        let target = self.target();
        let words = ["status".as_ref(), "--json".as_ref(), target.as_os_str()];
        command::stillpoint(self.trial.directory, words)?.json()
    }

    fn verified(&self) -> Result<Answer, Failed> {
        let target = self.target();
        command::stillpoint(
            self.trial.directory,
            ["verify".as_ref(), target.as_os_str()],
        )
    }

    /// Asks for an epoch and kills the job when it is staged and not durable yet.
    fn killed_before_flush(&self, job: Job, epoch: u64) -> Result<(), Failed> {
        let asked = thread::scope(|scope| {
            let asking = scope.spawn(|| self.checkpoint());
            let began = Instant::now();
            while self.status()?["staged"] != epoch {
                ensure!(began.elapsed() < PATIENCE, "epoch {epoch} was never staged");
                thread::sleep(Duration::from_millis(10));
            }
            self.kill(job)?;
            asking
                .join()
                .map_err(|_| "the thread that asks failed".to_owned())?
        })?;
        asked.expect_reason(exit::FAILED, "staged")?;
        let epochs = command::epochs(&self.target());
        ensure!(
            !epochs.contains(&epoch),
            "epoch {epoch} became durable before the kill: {epochs:?}"
        );
        Ok(())
    }

    /// As a node that fails would end it.
    fn kill(&self, job: Job) -> Result<(), Failed> {
        for rank in strike::ranks(&self.target())? {
            strike::signal(rank, Signal::SIGKILL)?;
        }
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status != 0, "killed, but: {}", ended.show());
        Ok(())
    }

    /// What was on a node's fast tier is gone.
    fn lose(&self, rank: u32) -> Result<(), Failed> {
        fs::remove_dir_all(self.fast(rank)).map_err(|error| error.to_string())
    }

    fn ends_well(&self, job: Job) -> Result<Ended, Failed> {
        self.trial.go()?;
        self.trial.ends_well(job)
    }
}

fn on_nodes(name: &str, change: impl Fn(&mut Nodes), test: impl Fn(&Nodes) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "uneven_sizes")?;
        let _turn = Turn::take()?;
        Directory::new(&format!("tiers-{name}"))?.run(|directory| {
            let mut nodes = Nodes {
                trial: Trial::new(&program, 2, directory)?,
                sizes: ["24", "3"],
                capacity: "16M",
                slow: "",
                more: &["--peer-limit=60MB/s"],
            };
            change(&mut nodes);
            test(&nodes)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn bytes(answer: &Value, field: &str) -> u64 {
    answer["staging"][field].as_u64().unwrap_or(u64::MAX)
}

#[test]
fn what_fits_stays_on_its_own_node_until_it_is_durable() {
    on_nodes(
        "fits",
        |nodes| nodes.capacity = "60M",
        |nodes| {
            let job = nodes.start()?;
            for epoch in 1..=2 {
                let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
                ensure!(answer["epoch"] == epoch, "{answer}");
                let (local, peers, slow) = (
                    bytes(&answer, "local_bytes"),
                    bytes(&answer, "peer_bytes"),
                    bytes(&answer, "slow_bytes"),
                );
                ensure!(local > 27_000_000 && peers == 0 && slow == 0, "{answer}");
            }
            nodes.verified()?.expect(exit::DONE)?;
            let status = nodes.status()?;
            ensure!(
                status["epochs"] == serde_json::json!([1, 2]) && status["staged"].is_null(),
                "{status}"
            );
            nodes.ends_well(job)?;
            // What is durable does not fill the nodes' memory when the job has ended.
            for rank in 0..2 {
                let left = fs::read_dir(nodes.fast(rank))
                    .map_err(|error| error.to_string())?
                    .count();
                ensure!(
                    left == 0,
                    "{left} entries are left on the fast tier of rank {rank}"
                );
            }
            Ok(())
        },
    );
}

#[test]
fn what_does_not_fit_goes_to_a_peer_and_to_the_slow_tier_and_is_read_where_it_is_nearest() {
    on_nodes(
        "spills",
        |nodes| nodes.slow = ",limit=20MB/s",
        |nodes| {
            let job = nodes.start()?;
            let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
            for field in ["local_bytes", "peer_bytes", "slow_bytes"] {
                ensure!(
                    (1_000_000..40_000_000).contains(&bytes(&answer, field)),
                    "{answer}"
                );
            }
            nodes.verified()?.expect(exit::DONE)?;
            nodes.kill(job)?;
            // The first blocks of page data are broken where they are far; the near ones are whole.
            let image = nodes.target().join("epoch-000001/rank-000001.img");
            OpenOptions::new()
                .write(true)
                .open(&image)
                .and_then(|file| file.write_all_at(&[0x55; 4096], 4096))
                .map_err(|error| error.to_string())?;
            nodes.verified()?.expect(exit::FAILED)?;
            nodes.ends_well(nodes.restart()?)?;
            Ok(())
        },
    );
}

#[test]
fn an_epoch_that_was_only_staged_is_made_whole_by_a_restart() {
    on_nodes(
        "before-flush",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            let job = nodes.restart()?;
            nodes.ends_well(job)?;
            ensure!(
                command::epochs(&nodes.target()) == [1],
                "{:?}",
                command::epochs(&nodes.target())
            );
            nodes.verified()?.expect(exit::DONE)?;
            let status = nodes.status()?;
            ensure!(
                status["restarted_from"] == 1 && status["staged"].is_null(),
                "{status}"
            );
            Ok(())
        },
    );
}

#[test]
fn the_loss_of_a_fast_tier_before_the_flush_goes_back_to_the_last_durable_epoch() {
    on_nodes(
        "lost",
        |nodes| nodes.slow = ",limit=8MB/s",
        |nodes| {
            let job = nodes.start()?;
            nodes.checkpoint()?.expect(exit::DONE)?;
            nodes.killed_before_flush(job, 2)?;
            nodes.lose(0)?;
            let ended = nodes.ends_well(nodes.restart()?)?;
            ensure!(
                ended.stderr.contains("going back to epoch 1"),
                "{}",
                ended.show()
            );
            ensure!(
                nodes.status()?["restarted_from"] == 1,
                "{}",
                nodes.status()?
            );
            ensure!(
                nodes.status()?["staged"].is_null(),
                "the lost epoch can still be found"
            );
            Ok(())
        },
    );
}

#[test]
fn without_a_durable_epoch_the_loss_of_a_fast_tier_is_a_clear_refusal() {
    on_nodes(
        "refused",
        |nodes| nodes.slow = ",limit=5MB/s",
        |nodes| {
            nodes.killed_before_flush(nodes.start()?, 1)?;
            nodes.lose(1)?;
            let ended = nodes.restart()?.end(PATIENCE)?;
            ensure!(ended.status == exit::FAILED, "{}", ended.show());
            ensure!(
                ended.stderr.contains("no durable epoch to go back to")
                    && ended.stderr.contains("fast.1"),
                "{}",
                ended.show()
            );
            Ok(())
        },
    );
}

#[test]
fn with_a_partner_the_loss_of_either_fast_tier_loses_nothing() {
    for lost in 0..2 {
        on_nodes(
            &format!("partner-{lost}"),
            |nodes| {
                nodes.slow = ",limit=8MB/s";
                nodes.capacity = "64M";
                nodes.more = &["--redundancy=partner"];
            },
            |nodes| {
                nodes.killed_before_flush(nodes.start()?, 1)?;
                nodes.lose(lost)?;
                nodes.ends_well(nodes.restart()?)?;
                ensure!(
                    nodes.status()?["restarted_from"] == 1,
                    "{}",
                    nodes.status()?
                );
                Ok(())
            },
        );
    }
}

#[test]
fn a_suspend_leaves_nothing_on_the_fast_tiers() {
    on_nodes(
        "suspend",
        |_| {},
        |nodes| {
            let job = nodes.start()?;
            nodes.checkpoint()?.expect(exit::DONE)?;
            nodes.trial.suspended(job)?;
            for rank in 0..2 {
                nodes.lose(rank)?;
            }
            let job = nodes.restart()?;
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn more_than_all_tiers_hold_is_refused_and_the_job_runs_on() {
    on_nodes(
        "too-much",
        |nodes| nodes.slow = ",capacity=20M",
        |nodes| {
            let job = nodes.start()?;
            nodes
                .checkpoint()?
                .expect_reason(exit::FAILED, "the slow tier has room for 20 MB")?;
            ensure!(
                command::epochs(&nodes.target()).is_empty(),
                "an epoch was written"
            );
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn one_node_has_no_partner() {
    on_nodes(
        "alone",
        |nodes| nodes.more = &["--redundancy=partner", "--tier=fast=shared,capacity=1G"],
        |nodes| {
            let mut command = job::mpirun(2);
            let slow = format!("--tier=slow={}", nodes.target().display());
            command
                .arg(place::stillpoint()?)
                .arg("run")
                .arg(slow)
                .args(nodes.more)
                .arg("--");
            command.arg(nodes.trial.program.build()?).args(nodes.sizes);
            let mut job = nodes.trial.launch(command)?;
            nodes.trial.ready(&mut job)?;
            nodes
                .checkpoint()?
                .expect_reason(exit::FAILED, "there is no partner")?;
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn a_stranger_at_the_peers_port_gets_nowhere() {
    on_nodes(
        "stranger",
        |nodes| nodes.slow = ",limit=20MB/s",
        |nodes| {
            let job = nodes.start()?;
            let status = nodes.status()?;
            let address = status["live"]["tiers"][1]["address"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let key = Key::random().map_err(|error| error.to_string())?;
            match Peer::open(&address, &key, PATIENCE) {
                Err(PeerError::Handshake {
                    source: HandshakeError::WrongKey,
                    ..
                }) => {}
                other => return Err(format!("not told that the key is wrong: {other:?}")),
            }
            let mut stranger = TcpStream::connect(&address).map_err(|error| error.to_string())?;
            stranger
                .write_all(&[b'G'; 100])
                .map_err(|error| error.to_string())?;
            let mut answer = vec![];
            // It is shown out: an end, or a reset.
            let _ = stranger.read_to_end(&mut answer);
            ensure!(
                answer.is_empty(),
                "a stranger was answered {} bytes",
                answer.len()
            );
            let answer = nodes.checkpoint()?.expect(exit::DONE)?.json()?;
            ensure!(bytes(&answer, "peer_bytes") > 0, "{answer}");
            nodes.ends_well(job)?;
            Ok(())
        },
    );
}

#[test]
fn bad_options_are_named_by_their_field() {
    let tested = Directory::new("tiers-options").and_then(|directory| {
        directory.run(|directory| {
            let slow = format!("slow={}", directory.file("slow").display());
            let fast = format!("fast={}", directory.file("fast").display());
            for (options, word) in [
                (
                    vec![format!("--tier={fast},capacity=-5G")],
                    "capacity: '-5G' is negative",
                ),
                (vec![format!("--tier={fast}")], "capacity"),
                (vec![format!("--tier={fast},capacity=1G,limit=0")], "limit"),
                (
                    vec![format!("--tier={fast},capacity=1G,bandwidth=5G")],
                    "bandwidth",
                ),
                (vec!["--tier=medium=/x".to_owned()], "medium"),
                (
                    vec![format!("--tier={slow}"), "--redundancy=partner".to_owned()],
                    "--tier fast",
                ),
                (
                    vec![format!("--tier={slow}"), "--dir=/elsewhere".to_owned()],
                    "/elsewhere",
                ),
                (vec!["--peer-limit=0".to_owned()], "0"),
                (
                    vec!["--tier=fast=/proc/x,capacity=1G".to_owned()],
                    "/proc/x",
                ),
            ] {
                let words = ["run".to_owned()]
                    .into_iter()
                    .chain(options)
                    .chain(["true".to_owned()]);
                let answer = command::stillpoint(directory, words)?;
                ensure!(
                    [exit::USAGE, exit::FAILED].contains(&answer.status)
                        && answer.stderr.contains(word),
                    "does not speak of '{word}': {}",
                    answer.show()
                );
            }
            Ok(())
        })
    });
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
