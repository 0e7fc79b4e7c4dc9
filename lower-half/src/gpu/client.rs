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
    Answer, Facts, Request, State, Uuid, VERSION, receive, send, socket,
};
use stillpoint_protocol::launch::Launch;

use crate::ground::unnoticed;

/// What the helper's file is called, beside this one.
const HELPER: &str = "stillpoint-gpu";

/// How long a helper may take until it listens.
const STARTS: Duration = Duration::from_secs(20);
/// How long it may take to say something that it knows. It may begin with the driver first.
const ANSWERS: Duration = Duration::from_secs(30);
/// How long a driver may take to move all memory of a process.
const MOVES: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(5);

/// Which launch this rank is of.
static LAUNCH: OnceLock<String> = OnceLock::new();

/// Notes whose helper is the rank's.
pub fn this_is(launch: &Launch) {
    LAUNCH.get_or_init(|| launch.launch.clone());
}

/// Why something could not be had of the helper.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The driver, or the helper, says so.
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

fn helper(what: &'static str) -> impl FnOnce(io::Error) -> Trouble {
    move |source| Trouble::Helper { what, source }
}

/// A connection.
pub struct Client {
    from: BufReader<UnixStream>,
    /// The helper's process.
    pid: i32,
}

impl Client {
    /// Connects; starts the helper where there is none.
    ///
    /// # Errors
    /// It cannot be started, or is another user's or installation's.
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
        let answer = self.exchange(&request, within);
        if answer.as_ref().is_err_and(|error| waited(error.kind())) {
            // It hangs. Another one finds out what state the driver has the process in.
            // SAFETY: ends the helper, which this job has started; its other ranks start another one too.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
        match answer.map_err(helper("does not answer"))? {
            Answer::Failed(reason) => Err(Trouble::Refused(reason)),
            answer => Ok(answer),
        }
    }

    fn exchange(&mut self, request: &Request, within: Duration) -> io::Result<Answer> {
        self.from.get_ref().set_read_timeout(Some(within))?;
        let mut line = Vec::new();
        send(&mut line, request)?;
        self.from.get_ref().write_all(&line)?;
        receive(&mut self.from)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn order(&mut self, request: Request, within: Duration) -> Result<(), Trouble> {
        match self.ask(request, within)? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// What the node has.
    pub fn facts(&mut self) -> Result<Facts, Trouble> {
        match self.ask(Request::Facts, ANSWERS)? {
            Answer::Facts(facts) => Ok(facts),
            other => Err(unexpected(&other)),
        }
    }

    /// What the driver has this process in.
    pub fn state(&mut self) -> Result<State, Trouble> {
        match self.ask(Request::State, ANSWERS)? {
            Answer::State(state) => Ok(state),
            other => Err(unexpected(&other)),
        }
    }

    /// The thread that carries checkpoint and restore out, as the driver knows it.
    pub fn restore_thread(&mut self) -> Result<u32, Trouble> {
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
}

fn waited(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn unexpected(answer: &Answer) -> Trouble {
    Trouble::Refused(format!("the node's helper {HELPER} answers {answer:?}"))
}

/// A connection to the helper that listens, or to one that is started.
fn reach() -> io::Result<UnixStream> {
    let launch = LAUNCH
        .get()
        .ok_or_else(|| io::Error::other("this process is no rank of a job"))?;
    let name = socket(launch, nix::unistd::geteuid().as_raw());
    let place = SocketAddr::from_abstract_name(&name)?;
    let end = Instant::now() + STARTS;
    let mut started = false;
    loop {
        match UnixStream::connect_addr(&place) {
            Ok(stream) => {
                return unnoticed::out_of_the_way(OwnedFd::from(stream)).map(UnixStream::from);
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
    let child = unnoticed::start(&path, &arguments, None)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    child.reap();
    Ok(())
}

/// Beside this executable.
fn path() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(HELPER))
}
