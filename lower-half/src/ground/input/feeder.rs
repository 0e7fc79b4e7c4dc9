//! The process that feeds a rank's standard input.
//!
//! It reads the launcher's input for the program and writes it to a pipe, whose reading end is the program's descriptor 0. So it knows, at a checkpoint, which
//! input the program has had and which is still to come. It is a process rather than a thread, because a script that reads its input, and the program that the
//! script starts, share one input: it outlives an `execve`, and the end of each of them. It ends with the last reader of the pipe.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use super::messages::{Answer, Found, Request, Stand, receive, send};
use super::source::Source;

/// Before the program has read anything, no more is read ahead than fits into a pipe: a program that never reads keeps its launcher waiting, as natively.
const UNREAD: usize = 64 << 10;
/// At a checkpoint it reads on until nothing has come for `SILENCE`, or at most for `LONGEST`.
const SILENCE: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// The longest wait for the first byte of a restart's input: a launcher's terminal may never give one.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// The time within which a rank that has begun a message must end it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The descriptors and the limit for its work.
pub struct Means {
    pub source: Option<OwnedFd>,
    /// The pipe that the program reads; `None`: a restart will provide it.
    pub sink: Option<OwnedFd>,
    pub listener: UnixListener,
    /// The largest number of bytes that are read ahead.
    pub most: usize,
}

struct Feeder {
    source: Source,
    sink: Option<OwnedFd>,
    listener: UnixListener,
    most: usize,
    /// The connection of the rank that holds it, or is about to start it.
    line: Option<UnixStream>,
    held: bool,
    /// Set by the first connection.
    heard: bool,
    ahead: Vec<u8>,
    /// Bytes of `ahead` that have been written.
    fed: usize,
    /// Bytes that were written before the program has read any; `None`: it has read some.
    unread: Option<usize>,
}

/// Feeds until the pipe has no reader any more.
pub fn run(means: Means) {
    let Means {
        source,
        sink,
        listener,
        most,
    } = means;
    let mut feeder = Feeder {
        source: Source::new(source),
        unread: sink.is_some().then_some(0),
        sink,
        listener,
        most,
        line: None,
        held: false,
        heard: false,
        ahead: Vec::new(),
        fed: 0,
    };
    let _ = feeder.serve();
}

impl Feeder {
    /// Ends when all input has been fed, or no peer is left.
    fn serve(&mut self) -> io::Result<()> {
        while !self.is_done() {
            let (reads, writes) = (self.reads(), self.writes());
            let source = self.source.number().filter(|_| reads);
            // SAFETY: the source outlives the borrow: nothing closes it before `poll` has returned.
            let source = source.map(|number| unsafe { BorrowedFd::borrow_raw(number) });
            let mut watched = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            watched.extend(source.map(|source| PollFd::new(source, PollFlags::POLLIN)));
            let of_sink = match writes {
                true => PollFlags::POLLOUT,
                false => PollFlags::empty(),
            };
            let sink = self.sink.as_ref().map(OwnedFd::as_fd);
            watched.extend(sink.map(|sink| PollFd::new(sink, of_sink)));
            let line = self.line.as_ref().map(UnixStream::as_fd);
            watched.extend(line.map(|line| PollFd::new(line, PollFlags::POLLIN)));
            match poll(&mut watched, PollTimeout::NONE) {
                Err(nix::Error::EINTR) => continue,
                result => result.map_err(io::Error::from)?,
            };
            let seen: Vec<(RawFd, PollFlags)> = watched
                .iter()
                .map(|one| {
                    (
                        one.as_fd().as_raw_fd(),
                        one.revents().unwrap_or(PollFlags::empty()),
                    )
                })
                .collect();
            let of = |number: Option<RawFd>| {
                let mut all = seen.iter();
                all.find(|(one, _)| Some(*one) == number)
                    .map_or(PollFlags::empty(), |(_, seen)| *seen)
            };
            let line = of(self.line.as_ref().map(AsRawFd::as_raw_fd));
            let listener = of(Some(self.listener.as_raw_fd()));
            let sink = of(self.sink.as_ref().map(AsRawFd::as_raw_fd));
            let source = of(self.source.number());
            if sink.contains(PollFlags::POLLERR) {
                return Ok(());
            }
            if reads && !source.is_empty() {
                self.source.read(&mut self.ahead);
            }
            if sink.contains(PollFlags::POLLOUT) {
                self.feed();
            }
            if !line.is_empty() && self.answer().is_err() {
                self.line = None;
                self.held = false;
            }
            if !listener.is_empty() {
                self.hear();
            }
        }
        Ok(())
    }

    /// Whether everything has been fed, or the rank that was to start it has gone.
    fn is_done(&self) -> bool {
        match self.sink {
            Some(_) => !self.held && self.source.has_ended() && self.fed == self.ahead.len(),
            None => self.line.is_none() && self.heard,
        }
    }

    fn reads(&self) -> bool {
        let most = match self.unread {
            Some(_) => self.most.min(UNREAD),
            None => self.most,
        };
        !self.held && self.sink.is_some() && self.ahead.len() - self.fed < most
    }

    fn writes(&self) -> bool {
        !self.held && self.fed < self.ahead.len()
    }

    fn feed(&mut self) {
        let Some(sink) = self.sink.as_ref().map(AsRawFd::as_raw_fd) else {
            return;
        };
        if let Some(before) = self.unread {
            let mut waiting: libc::c_int = 0;
            // SAFETY: FIONREAD writes one int, which lives on this stack.
            let told = unsafe { libc::ioctl(sink, libc::FIONREAD, &raw mut waiting) } == 0;
            if told && (waiting as usize) < before {
                self.unread = None;
            }
        }
        let rest = &self.ahead[self.fed..];
        // SAFETY: the kernel reads the bytes of the slice; the pipe's writing end does not block.
        let wrote = unsafe { libc::write(sink, rest.as_ptr().cast(), rest.len()) };
        let wrote = wrote.max(0) as usize;
        self.fed += wrote;
        if let Some(before) = &mut self.unread {
            *before += wrote;
        }
        if self.fed == self.ahead.len() {
            self.ahead.clear();
            self.fed = 0;
            self.ahead.shrink_to(UNREAD);
        } else if self.fed >= self.ahead.len() / 2 {
            self.ahead.drain(..self.fed);
            self.fed = 0;
        }
    }

    /// Accepts a connection. The newest one counts: a rank that connects again has left the other one.
    fn hear(&mut self) {
        let Ok((line, _)) = self.listener.accept() else {
            return;
        };
        // SAFETY: geteuid takes nothing and touches no memory.
        let own = unsafe { libc::geteuid() };
        let user = getsockopt(&line, PeerCredentials).map(|peer| peer.uid());
        if user.is_ok_and(|user| user == own || user == 0)
            && line.set_read_timeout(Some(PATIENCE)).is_ok()
            && line.set_write_timeout(Some(PATIENCE)).is_ok()
        {
            self.line = Some(line);
            self.heard = true;
            self.held = false;
        }
    }

    /// Answers a request; an error ends the connection.
    fn answer(&mut self) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let line = self.line.as_ref().ok_or_else(gone)?;
        let (request, bytes, file) = receive::<Request>(line)?.ok_or_else(gone)?;
        match request {
            Request::Hold => {
                self.held = true;
                self.read_on();
                self.say(&Answer::Held(self.stand()), &[])
            }
            Request::Ahead => self.say(&Answer::Ahead, &self.ahead[self.fed..]),
            Request::Compare(earlier) => {
                self.source.compare(earlier);
                let found = self.compared();
                self.say(&Answer::Compared(found), &[])
            }
            Request::Feed { ended } => {
                let sink = file.ok_or_else(gone)?;
                never_wait(&sink)?;
                self.sink = Some(sink);
                if ended {
                    self.source.end();
                }
                let newer = std::mem::replace(&mut self.ahead, bytes);
                self.ahead.extend(newer);
                self.say(&Answer::Feeds, &[])
            }
        }
    }

    fn say(&self, answer: &Answer, bytes: &[u8]) -> io::Result<()> {
        let line = self.line.as_ref();
        line.map_or(Ok(()), |line| send(line, answer, bytes, None))
    }

    fn stand(&self) -> Stand {
        Stand {
            passed: self.source.passed().clone(),
            ended: self.source.has_ended(),
            ahead: (self.ahead.len() - self.fed) as u64,
        }
    }

    /// Reads until the end, until the limit on bytes read ahead, or until nothing comes any more.
    fn read_on(&mut self) {
        let begun = Instant::now();
        while self.ahead.len() - self.fed < self.most && begun.elapsed() < LONGEST {
            let wait = SILENCE.saturating_sub(self.source.silence());
            if !self.read_within(wait) {
                return;
            }
        }
    }

    /// Returns true if something has come, even the end.
    fn read_within(&mut self, wait: Duration) -> bool {
        let Some(number) = self.source.number() else {
            return false;
        };
        // SAFETY: the source has a number, so it is open; nothing closes it before the borrow ends.
        let source = unsafe { BorrowedFd::borrow_raw(number) };
        let mut watched = [PollFd::new(source, PollFlags::POLLIN)];
        let wait = PollTimeout::try_from(wait.as_millis()).unwrap_or(PollTimeout::ZERO);
        if poll(&mut watched, wait).unwrap_or(0) == 0 {
            return false;
        }
        self.source.read(&mut self.ahead);
        true
    }

    /// Reads until the comparison of the input is decided, as long as something comes.
    fn compared(&mut self) -> Found {
        while !self.source.is_told() {
            let wait = FIRST_WORD.saturating_sub(self.source.silence());
            if !self.read_within(wait) && !self.source.must_be_told() {
                break;
            }
        }
        self.source.go_on();
        self.source.found()
    }
}

/// Makes writes never wait.
fn never_wait(sink: &OwnedFd) -> io::Result<()> {
    let number = sink.as_raw_fd();
    // SAFETY: these calls take numbers and touch no memory; the descriptor is open (a reference).
    let result = unsafe {
        let flags = libc::fcntl(number, libc::F_GETFL);
        libc::fcntl(number, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
