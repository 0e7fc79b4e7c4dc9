//! `stillpoint coordinator`: started by rank 0, never by people.
//!
//! The launcher must not wait for it, and the application must not find it among its children. So the
//! first process (the child of rank 0) starts a process group of its own, forks and ends;
//! its child serves. It holds none of the launcher's pipes: stdin gives the description of the job and
//! ends, stdout takes one line ([`Ready`]) and then leads nowhere, stderr is the log.
//!
//! It stays in the job's session. One of its own would be a scheduling group of its own (autogroups, man 7 sched), which
//! a busy machine (Linux 6.18) let wait for 40 s although it was ready to run, and the job's checkpoint with it.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;
use stillpoint_directory::{Directory, Whose};
use stillpoint_faults::{Point, pass};
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::launch::Ready;

use super::start::{cannot_write, take};
use super::{Failure, Outcome, lock};
use crate::job::Patience;
use crate::log::Log;
use crate::registry::Registry;
use crate::server::{self, Spec};

/// Serve a job (started by `run` and `restart`)
#[derive(Debug, Args)]
pub struct Coordinator {
    /// Take over the job of this directory, whose coordinator has died
    #[arg(long, value_name = "DIR")]
    succeed: Option<PathBuf>,
}

impl Coordinator {
    pub fn execute(self) -> Outcome {
        let failed = |error: &(dyn Error + 'static)| Failure::of(error);
        close_inherited();
        // An agent, which starts a successor, blocks every signal.
        SigSet::empty()
            .thread_set_mask()
            .map_err(|error| failed(&error))?;
        let own = Pid::from_raw(0);
        nix::unistd::setpgid(own, own).map_err(|error| failed(&error))?;
        // No thread has been started, so the child has all that this process has.
        match fork::fork().map_err(|error| failed(&error))? {
            fork::Fork::Parent(_) => Ok(()),
            fork::Fork::Child => {
                say_nothing().map_err(|error| failed(&error))?;
                serve(self.succeed.as_deref())
            }
        }
    }
}

/// Until there is a log, stdout alone says what goes wrong: stderr may be the application's.
fn say_nothing() -> std::io::Result<()> {
    Ok(nix::unistd::dup2_stderr(nowhere()?)?)
}

fn nowhere() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// Lets go of descriptors that the launcher left open: it may wait for their end.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    for descriptor in open {
        // The listing's own descriptor is among them and already closed.
        let _ = nix::unistd::close(descriptor);
    }
}

fn serve(succeed: Option<&Path>) -> Outcome {
    let (runtime, coordinator, listening, _lock) =
        prepare(succeed).inspect_err(|failure| tell_starter(Some(failure)))?;
    runtime.block_on(coordinator.serve(listening, |written| {
        let failure = written
            .map_err(|error| Failure::failed(format!("cannot start the coordinator: {error}")));
        tell_starter(failure.err().as_ref());
    }));
    Ok(())
}

/// Tells rank 0 whether the job is served, and lets go of it.
fn tell_starter(failure: Option<&Failure>) {
    pass(Point::Serving);
    let ready = match failure {
        None => Ready::Serving,
        Some(failure) => Ready::Failed {
            status: failure.status,
            text: failure.text.clone(),
        },
    };
    let line = serde_json::to_string(&ready).unwrap_or_default() + "\n";
    // Rank 0 may have been killed in the meantime: then no rank comes, and that ends this process.
    let _ = std::io::stdout()
        .write_all(line.as_bytes())
        .and_then(|()| std::io::stdout().flush());
    if let Ok(nowhere) = nowhere() {
        let _ = nix::unistd::dup2_stdin(&nowhere);
        let _ = nix::unistd::dup2_stdout(&nowhere);
    }
}

fn failed(what: &str, error: &(dyn Error + 'static)) -> Failure {
    Failure::because(
        error,
        format!("cannot start the coordinator: {what}: {error}"),
    )
}

/// The end of a batch job sends SIGTERM to every process of it, this one included, while ranks may be
/// about to suspend. This process ends when they have. Called inside the runtime, whose handlers stay
/// for good and do nothing.
fn outlive_the_launcher() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (usr1, usr2) = (SignalKind::user_defined1(), SignalKind::user_defined2());
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        usr1,
        usr2,
    ] {
        // The stream is not needed: the handler, once installed, stays.
        drop(signal(kind)?);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A connection a rank; if it stays lower, accepting waits.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    Ok(())
}

/// What is to be served, where, and the lock on it.
type Task = (Spec, Directory, Option<File>);

type Prepared = (
    tokio::runtime::Runtime,
    server::Coordinator,
    server::Listening,
    Option<File>,
);

/// A launch that begins, as rank 0 describes it.
fn begun() -> Result<Task, Failure> {
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .map_err(|error| failed("read its task", &error))?;
    let spec: Spec =
        serde_json::from_slice(&text).map_err(|error| failed("read its task", &error))?;
    let directory = take(&spec.directory)?;
    let lock = lock::take(&directory)?;
    Ok((spec, directory, lock))
}

/// A launch that goes on, as its coordinator, which has died, has left it.
fn taken_over(path: &Path) -> Result<Task, Failure> {
    let directory =
        Directory::open(path, Whose::Ours).map_err(|error| failed("open its directory", &error))?;
    let lock = lock::take_over(&directory)?;
    let job = JobFile::read(path)?;
    if !job.runs_here() {
        let state = job.state.name();
        return Err(Failure::failed(format!("the job is {state}")));
    }
    if job.coordinator.alive() == Some(true) {
        let pid = job.coordinator.pid;
        return Err(Failure::failed(format!(
            "its coordinator, process {pid}, lives"
        )));
    }
    let spec = Spec::kept(&directory, job)
        .map_err(|error| failed("read what the one before has left", &error))?;
    Ok((spec, directory, lock))
}

fn prepare(succeed: Option<&Path>) -> Result<Prepared, Failure> {
    let (spec, directory, lock) = match succeed {
        Some(path) => taken_over(path)?,
        None => begun()?,
    };
    let log = Log::open(&directory).map_err(|error| failed("open its log", &error))?;
    nix::unistd::dup2_stderr(log.file()).map_err(|error| failed("open its log", &error))?;
    match succeed {
        // What has ended the one before must not end this one too.
        Some(_) => stillpoint_faults::disarm(),
        None => spec
            .keep(&directory)
            .map_err(|error| cannot_write(&spec.directory, &error))?,
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("start its runtime", &error))?;
    let (listening, addresses) = runtime
        .block_on(async {
            outlive_the_launcher()?;
            let listening = server::listen(spec.one_host).await?;
            let addresses = server::addresses(&listening, spec.one_host)?;
            Ok::<_, std::io::Error>((listening, addresses))
        })
        .map_err(|error| failed("listen", &error))?;
    let registry = Registry::of_this_user();
    let records = server::InDirectory {
        directory: directory.clone(),
        log,
    };
    let patience = Patience::default();
    let coordinator =
        server::Coordinator::new(spec, directory, addresses, patience, registry, records)
            .map_err(|error| failed("take the directory into use", &*error))?;
    Ok((runtime, coordinator, listening, lock))
}
