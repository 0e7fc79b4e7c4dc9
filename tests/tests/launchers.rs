//! Launchers: MPICH's Hydra over several hosts and into containers, and jobs that move from one launcher to another.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use stillpoint_tests::Failed;
use stillpoint_tests::job::Job;
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::network::Network;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;

/// The prefix of a command line that runs in a process id namespace of its own.
const CONTAINER: [&str; 7] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// MPICH 4.0 with UCX over TCP sometimes hangs in `MPI_Finalize`, natively too. This happens if one rank's connections are closed before another has
/// heard that its last direct write has arrived. Without direct writes it does not hang.
const NO_DIRECT_WRITES: (&str, &str) = ("UCX_TCP_PUT_ENABLE", "n");

/// The launcher of a launch.
#[derive(Clone, Copy)]
enum Launcher {
    Hydra,
    OpenMpi,
}

/// A job of two ranks, one on each of two hosts.
struct OnTwoHosts<'a> {
    trial: Trial<'a>,
    network: Network,
    mpich: Mpi,
    agent: PathBuf,
}

impl OnTwoHosts<'_> {
    fn launch(&self, launcher: Launcher, words: &[&str]) -> Result<Job, Failed> {
        let mut command = match launcher {
            Launcher::OpenMpi => self.network.mpirun(&self.trial.directory.file("own")),
            Launcher::Hydra => {
                let mut command = self.mpich.launcher(2);
                command.args(["-localhost", &self.network.outside()]);
                command.args(["-launcher", "rsh", "-launcher-exec"]);
                command.arg(&self.agent);
                command.args(["-hosts", &self.network.addresses().join(",")]);
                command.env("UCX_TLS", "tcp,self");
                command.env("UCX_NET_DEVICES", "eth0");
                command.env(NO_DIRECT_WRITES.0, NO_DIRECT_WRITES.1);
                command
            }
        };
        command.arg(place::stillpoint()?).args(words);
        self.trial.launch(command)
    }

    fn started(&self, launcher: Launcher) -> Result<Job, Failed> {
        let (target, program) = (self.trial.epochs_at(), self.trial.executable());
        let (target, program) = (target.to_string_lossy(), program.to_string_lossy());
        self.launch(launcher, &["run", "--dir", &target, "--", &program])
    }

    fn restarted(&self, launcher: Launcher) -> Result<Job, Failed> {
        let target = self.trial.epochs_at();
        self.launch(launcher, &["restart", &target.to_string_lossy()])
    }
}

fn mpich() -> Result<Mpi, Failed> {
    Mpi::named(&place::target().join("mpis"), "mpich-debian")
}

fn tried(name: &str, run: impl FnOnce(Trial) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "ring")?;
        Directory::new(name)?.run(|directory| run(Trial::new(&program, 2, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// All ranks know the launch by one name, although its launcher has different processes on each host.
#[test]
fn hydra_over_two_hosts_and_mpirun_carry_on_each_others_jobs() {
    tried("two-launchers-two-hosts", |trial| {
        let network = Network::up(2)?;
        let agent = trial.directory.file("agent");
        let script = place::project().join("ci/nodes");
        let script = format!("#!/bin/sh\nexec {} shell \"$@\"\n", script.display());
        fs::write(&agent, script).map_err(|error| error.to_string())?;
        fs::set_permissions(&agent, Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let hosts = OnTwoHosts {
            trial,
            network,
            mpich: mpich()?,
            agent,
        };
        let trial = &hosts.trial;
        let mut job = hosts.started(Launcher::Hydra)?;
        trial.ready(&mut job)?;
        for next in [Launcher::OpenMpi, Launcher::Hydra, Launcher::Hydra] {
            trial.suspended(job)?;
            job = hosts.restarted(next)?;
            trial.runs_again(&mut job)?;
        }
        trial.go()?;
        trial.ends_well(job).map(drop)
    });
}

/// No rank sees the launcher's process, nor another rank's.
#[test]
fn ranks_of_hydra_in_process_id_namespaces_of_their_own_are_one_launch() {
    tried("hydra-in-containers", |trial| {
        let mpich = mpich()?;
        let contained = |words: &[&str]| -> Result<Command, Failed> {
            let mut command = mpich.launcher(2);
            // UCX's shared memory does not connect such containers.
            command.env("UCX_TLS", "tcp,self");
            command.env("UCX_NET_DEVICES", "lo");
            command.env(NO_DIRECT_WRITES.0, NO_DIRECT_WRITES.1);
            command.args(CONTAINER);
            command.arg(place::stillpoint()?).args(words);
            Ok(command)
        };
        let (target, program) = (trial.epochs_at(), trial.executable());
        let (target, program) = (target.to_string_lossy(), program.to_string_lossy());
        let run = contained(&["run", "--dir", &target, "--", &program])?;
        let mut job = trial.launch(run)?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        let mut job = trial.launch(contained(&["restart", &target])?)?;
        trial.runs_again(&mut job)?;
        trial.go()?;
        trial.ends_well(job).map(drop)
    });
}
