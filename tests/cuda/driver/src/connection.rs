//! The connection to the devices: files of their folder, open while it lasts.

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
    /// Open for as long as the others are, as a real driver keeps its control device.
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
        // A name that nobody else has: a process may have the number of another that ran before, and so has a time.
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
        // Both ends: a device that goes is noticed where its reply does not come, and not by a signal.
        let requests = OpenOptions::new().read(true).write(true).open(request)?;
        // Before the devices hear of it: the process that has mapped it is the one that they serve.
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

    /// Asks the device.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Code> {
        let answer = message::send(&mut self.requests, request)
            .and_then(|()| message::receive(&mut self.replies));
        match answer {
            Ok(Reply::Failed(code)) => Err(code),
            Ok(reply) => Ok(reply),
            Err(_) => Err(code::UNKNOWN),
        }
    }

    /// Tells the device something that has no answer but that it is done, or none at all.
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

    /// What there is on the node.
    pub fn node(&mut self) -> Result<Node, Code> {
        match self.ask(&Request::Node)? {
            Reply::Node(node) => Ok(*node),
            _ => Err(code::UNKNOWN),
        }
    }

    /// Whether a fault strikes now.
    pub fn fault(&mut self, fault: Fault) -> bool {
        matches!(self.ask(&Request::Fault { fault }), Ok(Reply::Fault(true)))
    }

    /// Whether the device is there.
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
