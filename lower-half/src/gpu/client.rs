//! The connection to the node's helper. There is one helper for each launch of a job and node; the rank that needs it first starts it.

use std::ffi::CString;
use std::io::{self, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use stillpoint_gpu_messages::{
    Answer, Facts, Memory, Report, Request, State, Uuid, VERSION, receive, send, socket,
};
use stillpoint_ids::{Epoch, Rank};
use stillpoint_protocol::installed;
use stillpoint_protocol::launch::{GpuStaging, Launch};
use stillpoint_refusals::{Code, Coded};

use super::arena::{self, Arena};
use crate::ground::hidden_child;

/// The file name of the helper's program, which lies beside this executable.
const HELPER: &str = "stillpoint-gpu";

/// How long a helper may take until it listens.
const STARTS: Duration = Duration::from_secs(20);
/// How long it may take to answer a question. It may have to initialize the driver first.
pub(super) const ANSWERS: Duration = Duration::from_secs(30);
/// How long a driver may take to move all memory of a process.
pub(super) const MOVES: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(5);

/// The facts about this rank that requests to the helper need.
pub struct Asker {
    launch: String,
    pub rank: Rank,
    /// The checkpoint directory.
    pub directory: PathBuf,
    pub staging: GpuStaging,
}

static ASKER: OnceLock<Asker> = OnceLock::new();

/// Records the rank for which this process asks the helper.
pub fn this_is(launch: &Launch) {
    ASKER.get_or_init(|| Asker {
        launch: launch.launch.clone(),
        rank: launch.rank,
        directory: launch.directory.clone(),
        staging: launch.gpu_staging,
    });
}

/// Returns this rank.
///
/// # Errors
/// The process is not a rank of a job.
pub fn asker() -> io::Result<&'static Asker> {
    ASKER
        .get()
        .ok_or_else(|| io::Error::other("this process is no rank of a job"))
}

/// Why the helper has not done what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The driver or the helper refused.
    #[error("{0}")]
    Refused(String),
    #[error("the driver did not come to it within {0} ms")]
    TimedOut(u32),
    #[error("the node's helper {HELPER} {what}: {source}")]
    Helper {
        what: &'static str,
        source: io::Error,
    },
}

impl Coded for Trouble {
    fn code(&self) -> Code {
        match self {
            Trouble::Refused(_) | Trouble::Helper { .. } => Code::GpuDriver,
            Trouble::TimedOut(_) => Code::GpuBusy,
        }
    }
}

pub(super) fn helper(what: &'static str) -> impl FnOnce(io::Error) -> Trouble {
    move |source| Trouble::Helper { what, source }
}

/// Staged bytes: the index of their memory, their offset in it, and where they lie in the arena.
pub struct Next {
    pub memory: usize,
    pub offset: u64,
    pub bytes: u64,
    pub at: u64,
}

/// A connection to the helper.
pub struct Client {
    pub(super) from: BufReader<UnixStream>,
    /// The helper's process.
    pid: i32,
}

impl Client {
    /// Connects, and starts the helper if there is none.
    ///
    /// # Errors
    /// The helper cannot be started, or belongs to another user or installation.
    pub fn connect() -> Result<Client, Trouble> {
        let stream = reach().map_err(helper("cannot be reached"))?;
        let peer = getsockopt(&stream, PeerCredentials).map_err(io::Error::from);
        let peer = peer.map_err(helper("cannot be told apart"))?;
        if peer.uid() != nix::unistd::geteuid().as_raw() {
            let reason = format!("the node's helper {HELPER} belongs to user {}", peer.uid());
            return Err(Trouble::Refused(reason));
        }
        let mut client = Client {
            from: BufReader::new(stream),
            pid: peer.pid(),
        };
        client.order(Request::Hello { version: VERSION }, ANSWERS)?;
        Ok(client)
    }

    fn ask(&mut self, request: Request, within: Duration) -> Result<Answer, Trouble> {
        self.ask_with(&request, &[], within)
    }

    /// Sends a request followed by bytes, and returns the answer.
    pub(super) fn ask_with(
        &mut self,
        request: &Request,
        behind: &[u8],
        within: Duration,
    ) -> Result<Answer, Trouble> {
        let answer = self.exchange(request, behind, within);
        if answer.as_ref().is_err_and(|error| waited(error.kind())) {
            // The helper hangs. The next one asks the driver for the state of the process.
            // SAFETY: the call takes numbers; this job has started the helper, and its other ranks start another one too.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
        match answer.map_err(helper("does not answer"))? {
            Answer::Failed(reason) => Err(Trouble::Refused(reason)),
            answer => Ok(answer),
        }
    }

    fn exchange(
        &mut self,
        request: &Request,
        behind: &[u8],
        within: Duration,
    ) -> io::Result<Answer> {
        self.from.get_ref().set_read_timeout(Some(within))?;
        let mut line = Vec::new();
        send(&mut line, request)?;
        self.from.get_ref().write_all(&line)?;
        self.from.get_ref().write_all(behind)?;
        receive(&mut self.from)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn order(&mut self, request: Request, within: Duration) -> Result<(), Trouble> {
        match self.ask(request, within)? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns what the node has.
    pub fn facts(&mut self) -> Result<Facts, Trouble> {
        match self.ask(Request::Facts, ANSWERS)? {
            Answer::Facts(facts) => Ok(facts),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the driver's state of this process. Its restore thread must run; the answer waits for an earlier request.
    pub fn state(&mut self, within: Duration) -> Result<State, Trouble> {
        match self.ask(Request::State, within)? {
            Answer::State(state) => Ok(state),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the thread that carries checkpoint and restore out, as the driver knows it; `None`: this process has not initialized the driver.
    pub fn restore_thread(&mut self) -> Result<Option<u32>, Trouble> {
        match self.ask(Request::RestoreThread, ANSWERS)? {
            Answer::Thread(thread) => Ok(thread),
            other => Err(unexpected(&other)),
        }
    }

    pub fn lock(&mut self, milliseconds: u32) -> Result<(), Trouble> {
        let within = ANSWERS + Duration::from_millis(milliseconds.into());
        match self.ask(Request::Lock { milliseconds }, within)? {
            Answer::Done => Ok(()),
            Answer::TimedOut => Err(Trouble::TimedOut(milliseconds)),
            other => Err(unexpected(&other)),
        }
    }

    pub fn checkpoint(&mut self) -> Result<(), Trouble> {
        self.order(Request::Checkpoint, MOVES)
    }

    pub fn restore(&mut self, pairs: &[(Uuid, Uuid)]) -> Result<(), Trouble> {
        let pairs = pairs.to_vec();
        self.order(Request::Restore { pairs }, MOVES)
    }

    pub fn unlock(&mut self) -> Result<(), Trouble> {
        self.order(Request::Unlock, ANSWERS)
    }

    /// Measures the node's GPUs and links, unless that has been done before.
    pub fn survey(&mut self, asker: &Asker) -> Result<(), Trouble> {
        let directory = asker.directory.clone();
        self.order(Request::Survey { directory }, MOVES)
    }

    /// Stages device memory, or returns why it cannot be staged; then nothing has changed.
    pub fn stage(
        &mut self,
        asker: &Asker,
        epoch: Epoch,
    ) -> Result<Result<Report, String>, Trouble> {
        let request = Request::Stage {
            rank: asker.rank,
            epoch,
            directory: asker.directory.clone(),
        };
        match self.ask(request, MOVES)? {
            Answer::Staged(report) => Ok(Ok(report)),
            Answer::NotStaged(reason) => Ok(Err(reason)),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives staged memory back to the devices.
    pub fn unstage(&mut self) -> Result<(), Trouble> {
        self.order(Request::Unstage, MOVES)
    }

    /// Announces that staged memory is going to be asked for, and returns the list of memories.
    pub fn drain(&mut self) -> Result<Vec<Memory>, Trouble> {
        match self.ask(Request::Drain, MOVES)? {
            Answer::Memories(memories) => Ok(memories),
            other => Err(unexpected(&other)),
        }
    }

    /// Maps the memory in which the helper puts staged bytes, or takes them from.
    pub fn arena(&mut self, to_be_written: bool) -> Result<Arena, Trouble> {
        let bytes = match self.ask(Request::Arena, MOVES)? {
            Answer::Arena { bytes } => bytes,
            other => return Err(unexpected(&other)),
        };
        // The helper sends the descriptor only after this byte: the buffered reader would read ahead and lose it.
        let mut socket = self.from.get_ref();
        let file = socket
            .write_all(&[1])
            .and_then(|()| arena::receive(socket))
            .and_then(|file| Arena::map(&file, bytes, to_be_written));
        file.map_err(helper("shows no memory"))
    }

    /// Returns where the next staged bytes lie, or `None` after the last ones. They stay there until the next ones are asked for.
    pub fn next(&mut self) -> Result<Option<Next>, Trouble> {
        match self.ask(Request::Next, MOVES)? {
            Answer::Done => Ok(None),
            Answer::Bytes {
                memory,
                offset,
                bytes,
                at,
            } => Ok(Some(Next {
                memory,
                offset,
                bytes,
                at,
            })),
            other => Err(unexpected(&other)),
        }
    }

    /// Brings devices back with the bytes of these memories; `read` gives the next ones of the memory with that number.
    pub fn fill(
        &mut self,
        pairs: &[(Uuid, Uuid)],
        memories: &[Memory],
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), String>,
    ) -> Result<(), Trouble> {
        let asker = asker().map_err(helper("cannot be asked"))?;
        let mut arena = self.arena(true)?;
        let request = Request::Fill {
            rank: asker.rank,
            directory: asker.directory.clone(),
            pairs: pairs.to_vec(),
            memories: memories.to_vec(),
        };
        let mut answer = self.ask(request, MOVES)?;
        loop {
            match answer {
                Answer::Done => return Ok(()),
                Answer::Failed(reason) => return Err(Trouble::Refused(reason)),
                Answer::Bytes {
                    memory, bytes, at, ..
                } => {
                    let into = arena.bytes_mut(at, bytes).ok_or_else(outside)?;
                    read(memory, into).map_err(Trouble::Refused)?;
                    let said = self.from.get_ref().write_all(&[1]);
                    said.map_err(helper("takes no more"))?;
                }
                other => return Err(unexpected(&other)),
            }
            let next = receive(&mut self.from).and_then(|answer| {
                answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
            });
            answer = next.map_err(helper("does not answer"))?;
        }
    }
}

/// The error for bytes outside the arena.
pub(super) fn outside() -> Trouble {
    Trouble::Refused(format!(
        "the node's helper {HELPER} names memory that it has not shown"
    ))
}

fn waited(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

pub(super) fn unexpected(answer: &Answer) -> Trouble {
    Trouble::Refused(format!("the node's helper {HELPER} answers {answer:?}"))
}

/// Returns a connection to the helper, which it starts if none listens.
fn reach() -> io::Result<UnixStream> {
    let name = socket(&asker()?.launch, nix::unistd::geteuid().as_raw());
    let place = SocketAddr::from_abstract_name(&name)?;
    let end = Instant::now() + STARTS;
    let mut started = false;
    loop {
        match UnixStream::connect_addr(&place) {
            Ok(stream) => {
                return hidden_child::out_of_the_way(OwnedFd::from(stream)).map(UnixStream::from);
            }
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => return Err(error),
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => {}
        }
        if !started {
            start(&name)?;
            started = true;
        }
        thread::sleep(LOOK);
    }
}

fn start(name: &[u8]) -> io::Result<()> {
    let name = CString::new(name)?;
    let path = path()?;
    let arguments = [c"--start", &name];
    let child = hidden_child::start(&path, &arguments, None)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    child.reap();
    Ok(())
}

/// Returns the path of the helper, beside this executable or the one that has replaced it.
fn path() -> io::Result<PathBuf> {
    Ok(installed::this_program()?.with_file_name(HELPER))
}
