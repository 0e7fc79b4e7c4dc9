//! Standard input belongs to the job: a process of Stillpoint's feeds the launcher's input to each rank.
//!
//! If descriptor 0 of `stillpoint run` is a pipe or a socket of its own, the program gets another pipe in its place, and a process feeds that one ([`feeder`]). At a checkpoint, that
//! process pauses and reports which bytes have passed and which it has read ahead: the image holds both, and the pipe's contents. At a restart, another such
//! process continues behind the last byte that the program has had.
//!
//! * [`passed`] - the bytes that have passed, and how they are recognized again
//! * [`source`] - the launch's input
//! * [`feeder`] - the process
//! * [`process`] - how the process is started
//! * [`messages`] - the messages between the process and a rank

mod feeder;
mod messages;
pub mod passed;
mod process;
mod source;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockType, SockaddrStorage, getpeername, getsockopt, sockopt};
use nix::sys::stat::fstat;
use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;
use stillpoint_protocol::launch::Input as Terms;
use stillpoint_refusals::{Refusal, refusal};

use super::hidden_child;
use messages::{Answer, Found, Request, Stand, receive, send};
use passed::Passed;

/// The payload of an image: JSON, an end of line, and the bytes that were read ahead.
pub const KIND: Kind = Kind {
    name: "standard input",
    version: 1,
    always: false,
};

/// The variable that tells the application's programs which pipe is fed, and where its feeder listens.
pub const VARIABLE: &str = "STILLPOINT_INPUT";

/// The default limit on bytes that are read ahead.
const MOST: u64 = 64 << 20;
/// The highest permitted limit: an image holds these bytes in one piece.
const MOST_IN_AN_IMAGE: u64 = 256 << 20;
/// The longest time that the feeder may take to pause, and to take a message.
const HOLDS: Duration = Duration::from_secs(20);
/// Milliseconds between two checks whether the checkpoint has been given up.
const LOOK: u16 = 20;

/// The pipe that is fed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fed {
    device: u64,
    inode: u64,
    /// The name of the socket that its feeder listens at.
    socket: String,
}

/// This process's knowledge of its input.
#[derive(Default)]
struct Input {
    fed: Option<Fed>,
    /// The connection to the feeder, which pauses as long as the connection exists; in a restart, until it begins.
    line: Option<UnixStream>,
    stand: Option<Stand>,
    /// The name of a restarted feeder's socket, until it feeds.
    socket: Option<String>,
    terms: Option<Terms>,
}

static INPUT: Mutex<Input> = Mutex::new(Input {
    fed: None,
    line: None,
    stand: None,
    socket: None,
    terms: None,
});

fn input() -> MutexGuard<'static, Input> {
    INPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The payload without its bytes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    /// The number of the pipe among the image's descriptors.
    pub pipe: u64,
    passed: Passed,
    ended: bool,
    #[serde(skip)]
    ahead: Vec<u8>,
}

impl Saved {
    pub fn from_bytes(bytes: &[u8]) -> Result<Saved, Refusal> {
        let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
        let (words, ahead) = (parts.next(), parts.next());
        let saved: Result<Saved, _> = serde_json::from_slice(words.unwrap_or_default());
        let mut saved = saved
            .map_err(|error| refusal!(BrokenImage, "'{}' in its image: {error}", KIND.name))?;
        saved.ahead = ahead.unwrap_or_default().to_vec();
        Ok(saved)
    }
}

/// Notes the launch's terms for its input.
pub fn under(terms: &Terms) {
    input().terms = Some(terms.clone());
}

fn terms() -> Terms {
    input().terms.clone().unwrap_or_default()
}

fn most() -> u64 {
    terms().ahead.unwrap_or(MOST).min(MOST_IN_AN_IMAGE)
}

/// Has the launcher's pipe or socket fed to the program through another pipe. No other thread may have been started.
///
/// # Errors
/// It cannot be fed: the program reads the launcher's pipe itself, and a checkpoint names the writer.
pub fn start() -> io::Result<()> {
    if !is_a_pipe_with_a_writer(0) && !is_a_socket_of_its_own(0) {
        return Ok(());
    }
    let (reader, writer) = process::pipe_like(0)?;
    let status = fstat(&reader)?;
    let source = process::duplicate(0)?;
    let socket = process::start(Some(source), Some(writer), most())?;
    // SAFETY: both numbers are open; descriptor 0 becomes the fed pipe, for a program that has not begun.
    if unsafe { libc::dup2(reader.as_raw_fd(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    input().fed = Some(Fed {
        device: status.st_dev,
        inode: status.st_ino,
        socket,
    });
    Ok(())
}

/// Takes over the knowledge of the program that executed this one.
pub fn inherit() {
    let told = std::env::var(VARIABLE).unwrap_or_default();
    input().fed = serde_json::from_str(&told).ok();
}

/// Returns the variable for programs that the application executes or starts.
pub fn variable() -> Option<String> {
    let fed = input().fed.clone()?;
    Some(format!("{VARIABLE}={}", serde_json::to_string(&fed).ok()?))
}

/// Whether this is a pipe with a writer. A pipe without one already holds all of its input.
fn is_a_pipe_with_a_writer(number: RawFd) -> bool {
    // SAFETY: zeros are a valid structure, which lives on this stack; fstat fills it, and fails for a number that is closed.
    let pipe = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(number, &raw mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFIFO
    };
    let mut watched = libc::pollfd {
        fd: number,
        events: 0,
        revents: 0,
    };
    // SAFETY: poll reads and writes one structure, which lives on this stack, and does not wait.
    pipe && unsafe { libc::poll(&raw mut watched, 1, 0) } >= 0
        && watched.revents & libc::POLLHUP == 0
}

/// Whether this is one end of a connection that standard output and error do not lead to. Programs of `inetd` write to such a descriptor 0 too.
fn is_a_socket_of_its_own(number: RawFd) -> bool {
    // SAFETY: the number is borrowed for this call; calls with a closed number fail.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    let stream = getsockopt(&socket, sockopt::SockType) == Ok(SockType::Stream);
    if !stream || getpeername::<SockaddrStorage>(number).is_err() {
        return false;
    }
    let file = |number: RawFd| {
        // SAFETY: as above.
        let status = fstat(unsafe { BorrowedFd::borrow_raw(number) });
        status.ok().map(|status| (status.st_dev, status.st_ino))
    };
    let own = file(number);
    [1, 2].into_iter().all(|other| file(other) != own)
}

/// Whether this is the fed pipe, while its feeder pauses.
pub fn holds(device: u64, inode: u64) -> bool {
    let input = input();
    input.stand.is_some()
        && (input.fed.as_ref()).is_some_and(|fed| (fed.device, fed.inode) == (device, inode))
}

fn connect(socket: &str) -> io::Result<UnixStream> {
    let place = SocketAddr::from_abstract_name(socket)?;
    let line = UnixStream::connect_addr(&place)?;
    let line = UnixStream::from(hidden_child::out_of_the_way(OwnedFd::from(line))?);
    line.set_read_timeout(Some(HOLDS))?;
    line.set_write_timeout(Some(HOLDS))?;
    Ok(line)
}

/// Has the feeder read on and then pause, until [`go`].
///
/// # Errors
/// The feeder does not, in words for people.
pub fn hold(given_up: &dyn Fn() -> bool) -> Result<(), Refusal> {
    let failed = |error: io::Error| {
        refusal!(
            StandardInput,
            "its standard input cannot be held still: {error}: try again, or start the job with its input in a file"
        )
    };
    let Some(fed) = input().fed.clone() else {
        return Ok(());
    };
    let line = match connect(&fed.socket) {
        Ok(line) => line,
        // It has fed all input, or the pipe has no reader any more.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    send(&line, &Request::Hold, &[], None).map_err(failed)?;
    while !is_readable(&line) {
        if given_up() {
            return Ok(());
        }
    }
    match receive(&line) {
        Ok(Some((Answer::Held(stand), ..))) => {
            let mut input = input();
            input.line = Some(line);
            input.stand = Some(stand);
            Ok(())
        }
        // As above.
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(failed(io::ErrorKind::InvalidData.into())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn is_readable(line: &UnixStream) -> bool {
    let mut watched = [PollFd::new(line.as_fd(), PollFlags::POLLIN)];
    poll(&mut watched, PollTimeout::from(LOOK)).unwrap_or(0) > 0
}

/// Lets the feeder continue.
pub fn go() {
    let mut input = input();
    input.line = None;
    input.stand = None;
}

/// Returns the payload for an image, or `None` if all input has been fed.
///
/// # Errors
/// The feeder does not answer, in words for people.
pub fn save() -> Result<Option<Vec<u8>>, Refusal> {
    let input = input();
    let (Some(fed), Some(line), Some(stand)) = (&input.fed, &input.line, &input.stand) else {
        return Ok(None);
    };
    if stand.ended && stand.ahead == 0 {
        return Ok(None);
    }
    let failed = |error: io::Error| {
        refusal!(
            StandardInput,
            "its standard input: what was read ahead of it: {error}"
        )
    };
    send(line, &Request::Ahead, &[], None).map_err(failed)?;
    let (_, ahead, _) = receive::<Answer>(line)
        .map_err(failed)?
        .ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
    let saved = Saved {
        pipe: fed.inode,
        passed: stand.passed.clone(),
        ended: stand.ended,
        ahead: Vec::new(),
    };
    let mut bytes = serde_json::to_vec(&saved).map_err(|error| failed(error.into()))?;
    bytes.push(b'\n');
    bytes.extend(ahead);
    Ok(Some(bytes))
}

/// Starts the feeder in a restart, before anything is mapped, and checks that this launch's input can continue the earlier one. No other thread may have been
/// started.
///
/// # Errors
/// It cannot, in words for people.
pub fn follow(saved: &Saved) -> Result<(), Refusal> {
    let failed =
        |error: io::Error| refusal!(OtherInput, "its standard input cannot be fed: {error}");
    let source = match saved.ended {
        true => None,
        false => process::duplicate(0).ok(),
    };
    let socket = process::start(source, None, most()).map_err(failed)?;
    let line = connect(&socket).map_err(failed)?;
    let gone = saved.passed.bytes();
    if !saved.ended && gone > 0 {
        line.set_read_timeout(None).map_err(failed)?;
        send(&line, &Request::Compare(saved.passed.clone()), &[], None).map_err(failed)?;
        let found = match receive(&line).map_err(failed)? {
            Some((Answer::Compared(found), ..)) => found,
            _ => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
        };
        let give = "restart it with the input that it had, whole, or with what is to follow";
        match found {
            Found::Same | Found::Other | Found::Silent => {}
            Found::Empty if terms().may_end => {}
            Found::Empty => {
                return Err(refusal!(
                    OtherInput,
                    "its standard input: {gone} bytes have been read and its end had not come, and this launch's is empty: {give}; or with \
                     --input-ends, where nothing is to follow"
                ));
            }
            Found::Changed => {
                return Err(refusal!(
                    OtherInput,
                    "its standard input: this launch's begins like the {gone} bytes that had been read, and goes on differently: {give}"
                ));
            }
        }
    }
    let mut input = input();
    input.line = Some(line);
    input.socket = Some(socket);
    Ok(())
}

/// Moves the connection to a feeder above an image's descriptors, which are at most `highest`.
///
/// # Errors
/// There is no such number.
pub fn move_above(highest: RawFd) -> io::Result<()> {
    let mut input = input();
    if let Some(line) = &input.line {
        // SAFETY: the call takes numbers and touches no memory.
        let moved =
            unsafe { libc::fcntl(line.as_raw_fd(), libc::F_DUPFD_CLOEXEC, highest.max(63) + 1) };
        if moved < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor has just been made, and nothing else owns it.
        input.line = Some(unsafe { OwnedFd::from_raw_fd(moved) }.into());
    }
    Ok(())
}

/// Has the feeder begin: `writer` is the writing end of the pipe that is the program's again.
///
/// # Errors
/// The feeder does not, in words for people.
pub fn carry_on(saved: &Saved, writer: &OwnedFd) -> Result<(), Refusal> {
    let failed =
        |error: io::Error| refusal!(OtherInput, "its standard input cannot be fed: {error}");
    let mut input = input();
    let Some((line, socket)) = input.line.take().zip(input.socket.take()) else {
        return Ok(());
    };
    let request = Request::Feed { ended: saved.ended };
    line.set_read_timeout(Some(HOLDS)).map_err(failed)?;
    send(&line, &request, &saved.ahead, Some(writer.as_raw_fd())).map_err(failed)?;
    match receive::<Answer>(&line).map_err(failed)? {
        Some((Answer::Feeds, ..)) => {}
        _ => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
    }
    let status = fstat(writer).map_err(|error| failed(error.into()))?;
    input.fed = Some(Fed {
        device: status.st_dev,
        inode: status.st_ino,
        socket,
    });
    Ok(())
}
