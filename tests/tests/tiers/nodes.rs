//! The job of these tests: two ranks of very different sizes, each with a fast tier of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use stillpoint_tests::command::{self, Answer, exit};
use stillpoint_tests::job::{self, Ended, Job};
use stillpoint_tests::network::Network;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, strike};

pub const PATIENCE: Duration = Duration::from_secs(40);

/// Two ranks; one of them is too large for its own fast tier unless a test changes that.
pub struct Nodes<'a> {
    pub trial: Trial<'a>,
    /// Megabytes of each rank.
    pub sizes: [&'static str; 2],
    pub capacity: &'static str,
    /// Fields behind the slow tier's path.
    pub slow: &'static str,
    pub more: &'static [&'static str],
    /// The network, if the nodes are more than directories.
    pub network: Option<Network>,
    /// Whether each of these nodes has a mount of its own for the checkpoint directory.
    pub clients: bool,
}

impl Nodes<'_> {
    pub fn target(&self) -> PathBuf {
        self.trial.epochs_at()
    }

    /// Returns the fast tier of a rank.
    pub fn fast(&self, rank: u32) -> PathBuf {
        let node = match &self.network {
            Some(network) => network.host(rank),
            None => rank.to_string(),
        };
        self.trial.directory.file(&format!("fast.{node}"))
    }

    /// Returns the tier options of every launch.
    pub fn options(&self) -> Vec<String> {
        let node = if self.network.is_some() { "%h" } else { "%r" };
        let fast = self.trial.directory.file(&format!("fast.{node}"));
        let mut options = vec![
            format!("--tier=fast={},capacity={}", fast.display(), self.capacity),
            format!("--tier=slow={}{}", self.target().display(), self.slow),
        ];
        options.extend(self.more.iter().map(|option| (*option).to_owned()));
        options
    }

    fn mpirun(&self) -> Result<Command, Failed> {
        let Some(network) = &self.network else {
            return Ok(job::mpirun(2));
        };
        for rank in 0..2 {
            fs::create_dir_all(self.fast(rank)).map_err(|error| error.to_string())?;
        }
        let mut command = network.mpirun(&self.trial.directory.file("fast"));
        if self.clients {
            command.env("STILLPOINT_NODES_VIEW", self.target());
        }
        Ok(command)
    }

    pub fn start(&self) -> Result<Job, Failed> {
        self.run(&[])
    }

    /// Starts another job in the directory, which discards the epochs there.
    pub fn start_another(&self) -> Result<Job, Failed> {
        self.run(&["--discard"])
    }

    fn run(&self, options: &[&str]) -> Result<Job, Failed> {
        let mut command = self.mpirun()?;
        command.arg(place::stillpoint()?).arg("run").args(options);
        command.args(self.options()).arg("--");
        command.arg(self.trial.program.build()?).args(self.sizes);
        let mut job = self.trial.launch(command)?;
        self.trial.ready(&mut job)?;
        Ok(job)
    }

    /// Starts the job again, without tiers.
    pub fn restart(&self) -> Result<Job, Failed> {
        self.trial.restarted()
    }

    /// Starts the job again with its tiers.
    pub fn restart_on_tiers(&self) -> Result<Job, Failed> {
        let mut command = self.mpirun()?;
        command.arg(place::stillpoint()?).arg("restart");
        command.args(self.options()).arg(self.target());
        self.trial.launch(command)
    }

    pub fn checkpoint(&self) -> Result<Answer, Failed> {
        let target = self.target();
        let words = ["checkpoint".as_ref(), "--json".as_ref(), target.as_os_str()];
        command::stillpoint(self.trial.directory, words)
    }

    pub fn status(&self) -> Result<Value, Failed> {
        let target = self.target();
        let words = ["status".as_ref(), "--json".as_ref(), target.as_os_str()];
        command::stillpoint(self.trial.directory, words)?.json()
    }

    pub fn verified(&self) -> Result<Answer, Failed> {
        let target = self.target();
        command::stillpoint(
            self.trial.directory,
            ["verify".as_ref(), target.as_os_str()],
        )
    }

    /// Waits until an epoch is staged. It is not durable then.
    pub fn until_staged(&self, epoch: u64) -> Result<(), Failed> {
        let began = Instant::now();
        while self.status()?["staged"] != epoch {
            ensure!(began.elapsed() < PATIENCE, "epoch {epoch} was never staged");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Asks for an epoch and kills the job when the epoch is staged but not durable yet.
    pub fn killed_before_flush(&self, job: Job, epoch: u64) -> Result<(), Failed> {
        let asked = thread::scope(|scope| {
            let asking = scope.spawn(|| self.checkpoint());
            self.until_staged(epoch)?;
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

    /// Returns the coordinator's log.
    pub fn log(&self) -> Result<String, Failed> {
        let path = self.target().join("coordinator.log");
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Kills the job, as a failing node would.
    pub fn kill(&self, job: Job) -> Result<(), Failed> {
        for rank in strike::ranks(&self.target())? {
            strike::signal(rank, Signal::SIGKILL)?;
        }
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status != 0, "killed, but: {}", ended.show());
        Ok(())
    }

    /// Removes a node's fast tier.
    pub fn lose(&self, rank: u32) -> Result<(), Failed> {
        fs::remove_dir_all(self.fast(rank)).map_err(|error| error.to_string())
    }

    pub fn ends_well(&self, job: Job) -> Result<Ended, Failed> {
        self.trial.go()?;
        self.trial.ends_well(job)
    }
}

pub fn on_nodes(
    name: &str,
    change: impl Fn(&mut Nodes),
    test: impl Fn(&Nodes) -> Result<(), Failed>,
) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "uneven_sizes")?;
        Directory::new(&format!("tiers-{name}"))?.run(|directory| {
            let mut nodes = Nodes {
                trial: Trial::new(&program, 2, directory)?,
                sizes: ["24", "3"],
                capacity: "16M",
                slow: "",
                more: &["--peer-limit=60MB/s"],
                network: None,
                clients: false,
            };
            change(&mut nodes);
            test(&nodes)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

pub fn bytes(answer: &Value, field: &str) -> u64 {
    answer["staging"][field].as_u64().unwrap_or(u64::MAX)
}
