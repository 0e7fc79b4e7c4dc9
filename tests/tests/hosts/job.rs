//! The job of these tests: six ranks over some nodes, which keep agreeing on whether to go on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stillpoint_tests::command::{self, Answer};
use stillpoint_tests::job::Job;
use stillpoint_tests::network::Network;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, strike};

/// The longest silence of a host in these jobs.
pub const SILENCE: Duration = Duration::from_secs(4);
/// mpirun's own settings for a silent daemon, in seconds: time to the first probe, pause, number of probes.
const DAEMONS: [(&str, &str); 3] = [
    ("oob_tcp_keepalive_time", "2"),
    ("oob_tcp_keepalive_intvl", "1"),
    ("oob_tcp_keepalive_probes", "3"),
];

/// A job and its nodes.
pub struct Hosts<'a> {
    pub trial: Trial<'a>,
    pub network: Network,
    /// Further options of `run` and `restart`.
    pub options: Vec<String>,
    /// `STILLPOINT_FAULT` of the first launch.
    pub fault: Option<String>,
    /// Whether mpirun keeps its default patience with its daemons: eight minutes.
    pub patient: bool,
}

impl Hosts<'_> {
    pub fn target(&self) -> PathBuf {
        self.trial.epochs_at()
    }

    fn mpirun(&self, places: &[(u32, u32)]) -> Result<Command, Failed> {
        let own = self.trial.directory.file("fast");
        // Every node has one of its own, and does not see the others.
        for (node, _) in places {
            let fast = self.fast(*node);
            fs::create_dir_all(&fast).map_err(|error| format!("{}: {error}", fast.display()))?;
        }
        let mut command = self.network.mpirun_on(places, &own);
        for (parameter, value) in DAEMONS.into_iter().filter(|_| !self.patient) {
            command.args(["--mca", parameter, value]);
        }
        command.arg(place::stillpoint()?);
        Ok(command)
    }

    /// Returns a node's fast tier.
    pub fn fast(&self, node: u32) -> PathBuf {
        let name = format!("fast.{}", self.network.host(node));
        self.trial.directory.file(&name)
    }

    fn launch(&self, mut command: Command) -> Result<Job, Failed> {
        let silence = SILENCE.as_secs().to_string();
        command.env("STILLPOINT_SILENCE", silence);
        self.trial.launch(command)
    }

    /// Starts the job, and waits until it is ready.
    pub fn start(&self, places: &[(u32, u32)]) -> Result<Job, Failed> {
        let mut command = self.mpirun(places)?;
        command.arg("run").arg("--dir").arg(self.target());
        command.args(&self.options).arg("--");
        command
            .arg(self.trial.executable())
            .args(&self.trial.arguments);
        if let Some(fault) = &self.fault {
            command.env("STILLPOINT_FAULT", fault);
        }
        let mut job = self.launch(command)?;
        self.trial.ready(&mut job)?;
        Ok(job)
    }

    /// Starts the job again on other nodes.
    pub fn restart(&self, places: &[(u32, u32)]) -> Result<Job, Failed> {
        let mut command = self.mpirun(places)?;
        command
            .arg("restart")
            .args(&self.options)
            .arg(self.target());
        self.launch(command)
    }

    pub fn checkpoint(&self) -> Result<Answer, Failed> {
        self.checkpoint_within("25")
    }

    pub fn checkpoint_within(&self, seconds: &str) -> Result<Answer, Failed> {
        self.stillpoint(&["checkpoint", "--timeout", seconds])
    }

    pub fn suspend(&self) -> Result<Answer, Failed> {
        self.stillpoint(&["suspend", "--timeout", "25"])
    }

    pub fn status(&self) -> Result<Value, Failed> {
        self.stillpoint(&["status", "--json"])?.json()
    }

    fn stillpoint(&self, words: &[&str]) -> Result<Answer, Failed> {
        let target = self.target();
        let words = words.iter().map(|word| (*word).to_owned());
        let target = target.to_string_lossy().into_owned();
        command::stillpoint(self.trial.directory, words.chain([target]))
    }

    /// Returns the newest durable epoch.
    pub fn newest(&self) -> u64 {
        command::epochs(&self.target()).pop().unwrap_or(0)
    }

    /// Returns the coordinators' log.
    pub fn log(&self) -> String {
        let log = fs::read(self.target().join("coordinator.log"));
        String::from_utf8_lossy(&log.unwrap_or_default()).into_owned()
    }

    /// Returns the launch in job.json, and its state there.
    pub fn recorded(&self) -> Result<(String, String), Failed> {
        let job = strike::job_file(&self.target())?;
        let text = |field: &str| job[field].as_str().unwrap_or_default().to_owned();
        Ok((text("launch"), text("state")))
    }
}

/// Runs a test with six ranks on as many nodes, in a directory of its own.
pub fn on_hosts(
    name: &str,
    nodes: u32,
    ranks: u32,
    megabytes: &str,
    change: impl FnOnce(&mut Hosts),
    test: impl FnOnce(&Hosts) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, "uneven_sizes")?;
    Directory::new(&format!("hosts-{name}"))?.run(|directory| {
        let mut trial = Trial::new(&program, ranks, directory)?;
        trial.arguments = vec![megabytes.to_owned(); ranks as usize];
        let mut hosts = Hosts {
            trial,
            network: Network::up(nodes)?,
            options: vec![],
            fault: None,
            patient: false,
        };
        change(&mut hosts);
        test(&hosts)
    })
}
