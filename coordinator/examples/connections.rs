//! The real coordinator, as a process of its own, with thousands of simulated ranks on the loopback interface. It measures the time from a request until the
//! coordinator knows that every rank is parked, and the memory that this takes.
//!
//! ```text
//! cargo build --release -p stillpoint
//! cargo run --release -p stillpoint --example connections -- 10000
//! ```
//!
//! The ranks are one process. Each is in five communicators (the world, itself, its row, its column, its node) and has a clock for each of them and for each
//! one's set of members. It answers each order at once, and one in a hundred raises its row's target. The checkpoint ends with the check, which rank 0
//! refuses. Both processes need a descriptor for each rank: `ulimit -Hn` has to allow it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stillpoint_clock::group::{communicator_ggid, ggid};
use stillpoint_coordinator::server::Spec;
use stillpoint_ids::Rank;
use stillpoint_protocol::agent::{Doing, FromAgent, Hello, Order, Progress, State, ToAgent};
use stillpoint_protocol::client::CommandConnection;
use stillpoint_protocol::codec::{self, Frames};
use stillpoint_protocol::command::{FromCommand, ToCommand};
use stillpoint_protocol::handshake::{Client, Role, SERVER_HELLO_BYTES};
use stillpoint_protocol::job_file::{JobFile, Process};
use stillpoint_protocol::sealed::{Channel, Sealer};
use stillpoint_refusals::refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};

type Failure = Box<dyn std::error::Error>;

/// Ranks of a node.
const NODE: u32 = 32;
/// Connections that are being made at once.
const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Failure> {
    let ranks: u32 = std::env::args().nth(1).map_or(Ok(10_000), |n| n.parse())?;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let directory = tempfile::tempdir()?;
    let coordinator = start(directory.path(), ranks)?;
    let outcome = measure(
        directory.path(),
        ranks,
        coordinator.as_raw().cast_unsigned(),
    );
    kill(coordinator, Signal::SIGKILL)?;
    outcome
}

/// Starts `stillpoint coordinator` and waits until it serves.
fn start(directory: &Path, ranks: u32) -> Result<Pid, Failure> {
    let spec = Spec {
        directory: directory.to_owned(),
        job: "connections".into(),
        launch: "connections".into(),
        name: "connections".into(),
        ranks,
        starter: Process::this(),
        one_host: true,
        silence: stillpoint_protocol::Silence::default(),
        mpi: "none".into(),
        library: "none".into(),
        command: vec!["connections".into()],
        working_directory: directory.to_owned(),
        restarted_from: None,
        origin: None,
        discard: false,
        keep: 2,
        interval: None,
        mttf: None,
        on_event: None,
        operators: None,
        suspended_status: 0,
        requeue: None,
        compress: "none".into(),
        incremental: stillpoint_protocol::agent::Incremental::Off,
        dedup: true,
        copies: None,
        precopy: false,
        staging: None,
        recovers: None,
        predecessor: None,
    };
    let mut first = Command::new(stillpoint_command()?)
        .arg("coordinator")
        .env("XDG_RUNTIME_DIR", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let stdin = first.stdin.take().ok_or("no stdin")?;
    serde_json::to_writer(stdin, &spec)?;
    // The serving process is the child of this one.
    first.wait()?;
    let begun = Instant::now();
    loop {
        if let Ok(job) = JobFile::read(directory) {
            return Ok(Pid::from_raw(i32::try_from(job.coordinator.pid)?));
        }
        if begun.elapsed() > PATIENCE {
            return Err("the coordinator does not serve".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The `stillpoint` command from the same build as this example.
fn stillpoint_command() -> Result<PathBuf, Failure> {
    let this = std::env::current_exe()?;
    let folder = this.parent().and_then(Path::parent).ok_or("no folder")?;
    Ok(folder.join("stillpoint"))
}

fn measure(directory: &Path, ranks: u32, coordinator: u32) -> Result<(), Failure> {
    let job = Rc::new(JobFile::read(directory)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let (told, mut tells) = mpsc::unbounded_channel();
        let turns = Rc::new(Semaphore::new(AT_ONCE));
        let begun = Instant::now();
        for rank in 0..ranks {
            let (job, turns, told) = (Rc::clone(&job), Rc::clone(&turns), told.clone());
            tokio::task::spawn_local(async move {
                if let Err(error) = live(rank, &job, &turns, &told).await {
                    eprintln!("rank {rank}: {error}");
                }
            });
        }
        all(ranks, Step::Connected, &mut tells).await?;
        let connected = begun.elapsed();
        let idle = memory(coordinator, "VmRSS")?;
        println!(
            "{ranks} connections made in {:.2} s, {idle} MiB",
            connected.as_secs_f64()
        );
        for attempt in 1..=3 {
            let before = busy(coordinator)?;
            checkpoint(attempt, ranks, &job, &mut tells).await?;
            let busy = busy(coordinator)? - before;
            println!(
                "    the coordinator was busy for {busy:.2} s of it, to the end of the release"
            );
        }
        println!(
            "largest memory of the coordinator: {} MiB",
            memory(coordinator, "VmHWM")?
        );
        Ok(())
    })
}

/// Asks for a checkpoint and waits until every rank has heard that all are parked.
async fn checkpoint(
    attempt: u32,
    ranks: u32,
    job: &JobFile,
    tells: &mut mpsc::UnboundedReceiver<Step>,
) -> Result<(), Failure> {
    let (addresses, key) = (job.addresses.clone(), job.key.clone());
    let begun = Instant::now();
    let command = std::thread::spawn(move || ask(&addresses, &key).map_err(|e| e.to_string()));
    let first = all(ranks, Step::Check, tells).await?;
    let last = begun.elapsed();
    println!(
        "checkpoint {attempt}: all parked after {:.3} s, known everywhere after {:.3} s",
        (first - begun).as_secs_f64(),
        last.as_secs_f64()
    );
    all(ranks, Step::Released, tells).await?;
    let answer = command.join().map_err(|_| "the command failed")??;
    match answer {
        ToCommand::Refused { .. } => Ok(()),
        other => Err(format!("{other:?} instead of a refusal").into()),
    }
}

fn ask(addresses: &[String], key: &stillpoint_protocol::Key) -> Result<ToCommand, Failure> {
    let connection = CommandConnection::open(addresses, &key.clone().into(), PATIENCE)?;
    let (sender, mut receiver) = connection.split()?;
    sender.send(&FromCommand::Checkpoint {
        suspend: false,
        timeout: None,
        waits: false,
        asked: None,
    })?;
    loop {
        match receiver.receive()? {
            stillpoint_protocol::Received::Message(ToCommand::Phase { .. }) => {}
            stillpoint_protocol::Received::Message(answer) => return Ok(answer),
            _ => return Err("no answer".into()),
        }
    }
}

/// The steps that a rank reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Connected,
    Check,
    Released,
}

/// Waits until that many ranks have come to a step. Returns the time of the first.
async fn all(
    ranks: u32,
    step: Step,
    tells: &mut mpsc::UnboundedReceiver<Step>,
) -> Result<Instant, Failure> {
    let mut first = None;
    for _ in 0..ranks {
        let told = tokio::time::timeout(PATIENCE, tells.recv()).await?;
        if told != Some(step) {
            return Err(format!("{told:?} instead of {step:?}").into());
        }
        first.get_or_insert_with(Instant::now);
    }
    first.ok_or_else(|| "no ranks".into())
}

/// The clocks of a rank: of the world, its row and column of a square, its node and itself; first each
/// communicator's own, then each one's set of members.
fn clocks(rank: u32, ranks: u32) -> Vec<u64> {
    let side = f64::from(ranks).sqrt().ceil() as u32;
    let (row, column) = (rank / side, rank % side);
    let below = |rank: &u32| *rank < ranks;
    let node = rank / NODE * NODE;
    let sets = [
        vec![ranks],
        (row * side..(row + 1) * side).filter(below).collect(),
        (0..side)
            .map(|row| row * side + column)
            .filter(below)
            .collect(),
        (node..node + NODE).filter(below).collect(),
        vec![rank],
    ];
    let own = (1..)
        .zip(&sets)
        .map(|(name, set)| communicator_ggid(name, set));
    own.chain(sets.iter().map(|set| ggid(set))).collect()
}

/// The place of the row's own clock in [`clocks`].
const ROW: usize = 1;

async fn live(
    rank: u32,
    job: &JobFile,
    turns: &Semaphore,
    told: &mpsc::UnboundedSender<Step>,
) -> Result<(), Failure> {
    let turn = turns.acquire().await?;
    let (mut stream, channel) = connect(job).await?;
    let (mut sealer, mut opener) = channel.split();
    drop(turn);
    let hello = Hello {
        rank: Rank(rank),
        size: job.ranks,
        pid: std::process::id(),
        host: "here".into(),
        namespace: Default::default(),
        launch: job.launch.clone(),
        restarted_from: None,
        returns: false,
        late: false,
    };
    say(&mut stream, &mut sealer, &FromAgent::Hello(hello)).await?;
    let ids = clocks(rank, job.ranks);
    let mut frames = Frames::default();
    loop {
        while let Some(message) = frames.next_message()? {
            obey(rank, &ids, message, (&mut stream, &mut sealer), told).await?;
        }
        stream.readable().await?;
        let mut bytes = [0; 4096];
        match stream.try_read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let mut opened = Vec::new();
                opener.open(&bytes[..count], &mut opened)?;
                frames.push(&opened);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

async fn connect(job: &JobFile) -> Result<(TcpStream, Channel), Failure> {
    let mut stream = TcpStream::connect(&job.addresses[0]).await?;
    stream.set_nodelay(true)?;
    let client = Client::new(&job.key, Role::Agent)?;
    stream.write_all(client.hello()).await?;
    let mut server = [0; SERVER_HELLO_BYTES];
    stream.read_exact(&mut server).await?;
    let (_, proof, channel) = client.answer(&server)?;
    stream.write_all(&proof).await?;
    Ok((stream, channel))
}

async fn say(
    stream: &mut TcpStream,
    sealer: &mut Sealer,
    message: &FromAgent,
) -> Result<(), Failure> {
    let mut sealed = Vec::new();
    sealer.seal(&codec::encode(message)?, &mut sealed)?;
    Ok(stream.write_all(&sealed).await?)
}

async fn obey(
    rank: u32,
    ids: &[u64],
    message: ToAgent,
    (stream, sealer): (&mut TcpStream, &mut Sealer),
    told: &mpsc::UnboundedSender<Step>,
) -> Result<(), Failure> {
    let (attempt, order) = match message {
        ToAgent::Checkpoint { attempt, order } => (attempt, order),
        ToAgent::Welcome => {
            say(stream, sealer, &FromAgent::MpiReady).await?;
            told.send(Step::Connected)?;
            return Ok(());
        }
        other => return Err(format!("{other:?}").into()),
    };
    let parked = |version| {
        Progress::State(State {
            doing: Doing::Parked,
            seen: version,
            poll: 0,
            sent: 0,
            received: 0,
            begun: 0,
        })
    };
    let mut answers = vec![];
    match order {
        Order::Begin(_) => {
            let seq = |id: &u64| (*id, 1000 + u64::from(rank % 3));
            let (own, sets) = ids.split_at(ids.len() / 2);
            // No operation has been done without a communicator.
            let unused = sets.iter().map(|id| (*id, 0));
            let clocks = own.iter().map(seq).chain(unused).collect();
            answers.push(Progress::Clocks { clocks });
        }
        Order::Targets { version, .. } => {
            if rank % 100 == 7 {
                let (ggid, seq) = (ids[ROW], 2000 + u64::from(rank));
                answers.push(Progress::Raise { ggid, seq });
            }
            answers.push(parked(version));
        }
        Order::Raised { version, .. } => answers.push(parked(version)),
        Order::Check => {
            told.send(Step::Check)?;
            let refusals = match rank {
                0 => vec![refusal!(Internal, "this is a measurement")],
                _ => vec![],
            };
            answers.push(Progress::CheckResult { refusals });
        }
        Order::Abort { .. } => {
            told.send(Step::Released)?;
            answers.push(Progress::Released);
        }
        other => return Err(format!("{other:?}").into()),
    }
    for progress in answers {
        say(stream, sealer, &FromAgent::Progress { attempt, progress }).await?;
    }
    Ok(())
}

/// Memory of a process, in MiB.
fn memory(process: u32, what: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with(what));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kib.ok_or("no such line")?.parse::<u64>()? / 1024)
}

/// Processor time that a process has had, in seconds.
fn busy(process: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may hold spaces; user and system time are the 14th and 15th fields.
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: Vec<f64> = fields
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let a_second =
        nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.ok_or("no clock tick")?;
    Ok(ticks.iter().sum::<f64>() / a_second as f64)
}
