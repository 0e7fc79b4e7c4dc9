//! The connection to the devices: open files in their folder.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use stillpoint_emulated_gpu_protocol::channel;
use stillpoint_emulated_gpu_protocol::clock;
use stillpoint_emulated_gpu_protocol::description::Node;
use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::message::{self, Reply, Request};
use stillpoint_emulated_gpu_protocol::{CONTROL, files};

use crate::code::{self, Code};
use crate::window;

/// A connection, with the channel mapped.
#[derive(Debug)]
pub struct Connection {
    /// Open as long as the others are, as with a real driver's control device.
    _control: File,
    requests: File,
    replies: File,
    folder: PathBuf,
}

impl Connection {
    /// Connects to the devices of a folder.
    pub fn open(folder: &Path) -> io::Result<Connection> {
        // Fails at once if no device has the pipe open.
        let mut control = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(folder.join(CONTROL))?;
        // The name must be unique. A process id may have belonged to an earlier process, so the name includes a time.
        let name = format!("nvidia-{}-{}", std::process::id(), clock::now());
        let [request, reply, channel] = files(&name).map(|file| folder.join(file));
        named_pipe(&request)?;
        named_pipe(&reply)?;
        let channel = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(channel)?;
        channel.set_len(channel::SIZE as u64)?;
        // The driver holds both ends, so it notices a lost device by the missing reply, and not by a signal.
        let requests = OpenOptions::new().read(true).write(true).open(request)?;
        // This comes before the devices hear of the client: they serve the process that has mapped the channel.
        window::map_channel(&channel)?;
        let introduced = control
            .write_all(format!("{name}\n").as_bytes())
            .and_then(|()| File::open(reply));
        let replies = match introduced {
            Ok(replies) => replies,
            Err(error) => {
                window::unmap_channel()?;
                return Err(error);
            }
        };
        Ok(Connection {
            _control: control,
            requests,
            replies,
            folder: folder.to_owned(),
        })
    }

    /// Sends a request to the device, and returns its answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Code> {
        let answer = message::send(&mut self.requests, request)
            .and_then(|()| message::receive(&mut self.replies));
        match answer {
            Ok(Reply::Failed(code)) => Err(code),
            Ok(reply) => Ok(reply),
            Err(_) => Err(code::UNKNOWN),
        }
    }

    /// Sends a request to the device that only gets a confirmation, or no answer at all.
    pub fn tell(&mut self, request: &Request) -> Result<(), Code> {
        if request.is_answered() {
            return self.ask(request).map(drop);
        }
        message::send(&mut self.requests, request).map_err(|_| code::UNKNOWN)
    }

    /// The devices' folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the node's description.
    pub fn node(&mut self) -> Result<Node, Code> {
        match self.ask(&Request::Node)? {
            Reply::Node(node) => Ok(*node),
            _ => Err(code::UNKNOWN),
        }
    }

    /// Tells whether a fault strikes now.
    pub fn fault(&mut self, fault: Fault) -> bool {
        matches!(self.ask(&Request::Fault { fault }), Ok(Reply::Fault(true)))
    }

    /// Tells whether the device is there.
    pub fn lives(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.replies.as_raw_fd(),
            events: 0,
            revents: 0,
        };
        // SAFETY: one entry, and no waiting.
        unsafe { libc::poll(&mut poll, 1, 0) };
        poll.revents & libc::POLLHUP == 0
    }
}

fn named_pipe(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a path that ends with a zero.
    match unsafe { libc::mkfifo(path.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
