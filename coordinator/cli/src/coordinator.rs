//! The coordinator's process. Rank 0 starts it ([`start`]), or an agent when the previous one has died (`stillpoint coordinator --succeed DIR`); people do
//! not.
//!
//! The launcher must not wait for it, and the application must not find it among its children. So the first process (the child of rank 0) begins a process
//! group of its own, forks and ends; its child serves. It holds none of the launcher's pipes. Its stdin is `/dev/null`, or gives the description of the job
//! and ends. Its stdout takes one line ([`Ready`]) and then is `/dev/null`. Its stderr is the log.
//!
//! Rank 0 forks instead of starting the program again, which would take a third of a launch. It waits only if it has to: it becomes its lower half meanwhile,
//! and this hears the first message ([`Started`]).
//!
//! The process stays in the job's session. A session of its own would be a scheduling group of its own (autogroups, man 7 sched). On a busy machine (Linux
//! 6.18) the kernel can keep such a group waiting for 40 s although it is ready to run, and the job's checkpoint with it.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;
use stillpoint_directory::{Directory, RequiredOwner};
use stillpoint_faults::{Point, pass, strike};
use stillpoint_protocol::job_file::JobFile;
use stillpoint_protocol::launch::Ready;
use stillpoint_protocol::launch_start::{self, Awaits};

use stillpoint_refusals::Code;

use super::job_directory::{cannot_write, take};
use super::{CommandResult, Failure, directory_owner, lock, title};
use stillpoint_coordinator::fence::Fence;
use stillpoint_coordinator::job::Patience;
use stillpoint_coordinator::log::Log;
use stillpoint_coordinator::registry::Registry;
use stillpoint_coordinator::server::{self, Spec};

/// Serve a job (started by `run` and `restart`)
#[derive(Debug, Args)]
pub struct Coordinator {
    /// Take over the job of this directory, whose coordinator has died
    #[arg(long, value_name = "DIR")]
    succeed: Option<PathBuf>,
}

impl Coordinator {
    pub fn execute(self) -> CommandResult {
        match self.succeed {
            Some(directory) => leave_and_serve(Errand::TakeOver(directory)),
            None => leave_and_serve(Errand::Told),
        }
    }
}

/// The launch that a coordinator's process is to serve.
enum Errand {
    /// The launch that this process has begun.
    Begun(Box<Spec>),
    /// A launch that stdin describes.
    Told,
    /// The launch of this directory, whose coordinator has died.
    TakeOver(PathBuf),
}

/// A coordinator that has been started, and has not yet reported that it serves.
pub struct Started {
    answer: File,
    first: i32,
}

/// Starts the coordinator of a launch. No other thread may have been started in this process.
pub fn start(spec: Spec) -> Result<Started, Failure> {
    let begin = |error: &(dyn Error + 'static)| failed("starting a process", error);
    strike(Point::StartCoordinator).map_err(|error| begin(&error))?;
    let (answer, answers) = std::io::pipe().map_err(|error| begin(&error))?;
    // Both processes would print the contents of the buffer.
    let _ = std::io::stdout().flush();
    match fork::fork().map_err(|error| begin(&error))? {
        fork::Fork::Child => {
            drop(answer);
            let ended = become_first_process(answers.into(), spec);
            std::process::exit(ended.map_or_else(|failure| failure.status.into(), |()| 0))
        }
        fork::Fork::Parent(first) => Ok(Started {
            answer: OwnedFd::from(answer).into(),
            first,
        }),
    }
}

impl Started {
    /// Waits until it serves.
    pub fn hear(self) -> Result<(), Failure> {
        let heard = launch_start::hear(self.answer, self.first);
        heard.map_err(|why| Failure::new(why.status, why.text))
    }

    /// Leaves the waiting to the program that this process becomes.
    pub fn left_to_the_lower_half(self) -> Result<Awaits, Failure> {
        let kept = FdFlag::empty();
        fcntl(&self.answer, FcntlArg::F_SETFD(kept))
            .map_err(|error| failed("waiting for it", &error))?;
        Ok(Awaits::Coordinator {
            answer: self.answer.into_raw_fd(),
            first: self.first,
        })
    }
}

/// Turns the child of rank 0 into the first process: no rank's process any more, without descriptors of the launcher.
fn become_first_process(answers: OwnedFd, spec: Spec) -> CommandResult {
    stillpoint_faults::begin_anew();
    let moved = || -> std::io::Result<()> {
        nix::unistd::dup2_stdout(answers)?;
        nix::unistd::dup2_stdin(nowhere()?)?;
        say_nothing()
    };
    moved().map_err(|error| failed("starting a process", &error))?;
    leave_and_serve(Errand::Begun(Box::new(spec)))
}

/// Leaves the process group, and serves in a child. No other thread may have been started in this process.
fn leave_and_serve(errand: Errand) -> CommandResult {
    close_inherited();
    // An agent that starts a successor blocks every signal.
    SigSet::empty()
        .thread_set_mask()
        .map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))?;
    let own = Pid::from_raw(0);
    nix::unistd::setpgid(own, own).map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))?;
    // No thread has been started, so the child has everything of this process.
    match fork::fork().map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))? {
        fork::Fork::Parent(_) => Ok(()),
        fork::Fork::Child => {
            say_nothing().map_err(|error| Failure::refuse_of(Code::NotSetUp, &error))?;
            serve(errand)
        }
    }
}

/// Until the log is open, only stdout reports errors: stderr may be the application's.
fn say_nothing() -> std::io::Result<()> {
    Ok(nix::unistd::dup2_stderr(nowhere()?)?)
}

fn nowhere() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// Closes descriptors that the launcher left open, since it may wait for their end.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    for descriptor in open {
        // The descriptor of the listing itself is among them, and already closed.
        let _ = nix::unistd::close(descriptor);
    }
}

fn serve(errand: Errand) -> CommandResult {
    let forked = matches!(errand, Errand::Begun(_));
    let (runtime, coordinator, listening) =
        prepare(errand).inspect_err(|failure| tell_starter(Some(failure)))?;
    runtime.block_on(coordinator.serve(listening, |written| {
        let failure = written.map_err(|error| {
            Failure::refuse(
                Code::NotSetUp,
                Failure::FAILED,
                format!("cannot start the coordinator: {error}"),
            )
        });
        tell_starter(failure.err().as_ref());
        if forked {
            // A search for processes of the application, or of `run`, must not find this one. If the title cannot be changed, it serves all the same.
            let _ = title::show(&["stillpoint", "coordinator"]);
        }
    }));
    Ok(())
}

/// Tells rank 0 whether the job is served, and releases its pipes.
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
    // Rank 0 may have been killed in the meantime: then no rank connects, and that ends this process.
    let _ = std::io::stdout()
        .write_all(line.as_bytes())
        .and_then(|()| std::io::stdout().flush());
    if let Ok(nowhere) = nowhere() {
        let _ = nix::unistd::dup2_stdin(&nowhere);
        let _ = nix::unistd::dup2_stdout(&nowhere);
    }
}

fn failed(what: &str, error: &(dyn Error + 'static)) -> Failure {
    Failure::refuse_because(
        Code::NotSetUp,
        error,
        format!("cannot start the coordinator: {what}: {error}"),
    )
}

/// Keeps this process alive through the signals that end a batch job. SIGTERM goes to every process of the job, while ranks may be about to suspend. This
/// process ends after them. It has to run inside the runtime, whose handlers stay for good and do nothing.
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
        // The stream is not needed: the handler stays once it is installed.
        drop(signal(kind)?);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Each rank needs a connection. With a lower limit, accepting waits.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    Ok(())
}

/// The launch to serve, its directory, and the lock on it.
type Task = (Spec, Directory, Option<File>);

type Prepared = (
    tokio::runtime::Runtime,
    server::Coordinator,
    server::Listening,
);

/// Reads the launch that stdin describes.
fn told() -> Result<Spec, Failure> {
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .map_err(|error| failed("reading its task", &error))?;
    serde_json::from_slice(&text).map_err(|error| failed("reading its task", &error))
}

/// Takes the directory for a launch that begins.
fn begun(spec: Spec) -> Result<Task, Failure> {
    let directory = take(&spec.directory)?;
    let lock = lock::take(&directory)?;
    directory_owner::make_way(&directory, &spec)?;
    Ok((spec, directory, lock))
}

/// Takes over a launch from a coordinator that has died.
fn taken_over(path: &Path) -> Result<Task, Failure> {
    let directory = Directory::open(path, RequiredOwner::Ours)
        .map_err(|error| failed("opening its directory", &error))?;
    let lock = lock::take_over(&directory)?;
    let job = JobFile::read(path)?;
    if !job.runs_here() {
        let state = job.state.name();
        return Err(Failure::refuse(
            Code::JobEnds,
            Failure::FAILED,
            format!("the job is {state}"),
        ));
    }
    if job.coordinator.alive() == Some(true) {
        let pid = job.coordinator.pid;
        return Err(Failure::refuse(
            Code::DirectoryInUse,
            Failure::FAILED,
            format!("its coordinator (process {pid}) is still running"),
        ));
    }
    let spec = Spec::kept(&directory, job)
        .map_err(|error| failed("reading the record of the coordinator before it", &error))?;
    Ok((spec, directory, lock))
}

fn prepare(errand: Errand) -> Result<Prepared, Failure> {
    let succeeds = matches!(errand, Errand::TakeOver(_));
    let (spec, directory, lock) = match errand {
        Errand::TakeOver(path) => taken_over(&path)?,
        Errand::Begun(spec) => begun(*spec)?,
        Errand::Told => begun(told()?)?,
    };
    let log = Log::open(&directory).map_err(|error| failed("opening its log", &error))?;
    nix::unistd::dup2_stderr(log.file()).map_err(|error| failed("opening its log", &error))?;
    match succeeds {
        // A fault that has ended the previous coordinator must not end this one too.
        true => stillpoint_faults::disarm(),
        false => spec
            .keep(&directory)
            .map_err(|error| cannot_write(&spec.directory, &error))?,
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("starting its runtime", &error))?;
    let (listening, addresses) = runtime
        .block_on(async {
            outlive_the_launcher()?;
            let listening = server::listen(spec.one_host).await?;
            let addresses = server::addresses(&listening, spec.one_host)?;
            Ok::<_, std::io::Error>((listening, addresses))
        })
        .map_err(|error| failed("listening", &error))?;
    let registry = Registry::of_this_user();
    let fence = Arc::new(Fence::new(lock));
    let records = server::InDirectory::new(directory.clone(), log, Arc::clone(&fence));
    let patience = Patience::default();
    let coordinator = server::Coordinator::new(
        spec, directory, addresses, patience, registry, records, fence,
    )
    .map_err(|error| failed("claiming the directory", &*error))?;
    Ok((runtime, coordinator, listening))
}
