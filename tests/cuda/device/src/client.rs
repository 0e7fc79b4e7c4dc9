//! One client: its connection, and what it has. When the connection ends, in whatever way, so does all that it has.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stillpoint_emulated_gpu_protocol::channel::{self, Channel};
use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::files;
use stillpoint_emulated_gpu_protocol::message::{self, Reply, Request};

use crate::memory::{Block, Space};
use crate::node::{Gpus, code};
use crate::stream::{Piece, Stream};

/// What a client has, shared with its streams.
pub struct Client {
    pub pid: i32,
    pub gpus: Arc<Gpus>,
    pub space: Space,
    pub gone: AtomicBool,
    channel: NonNull<Channel>,
}

// SAFETY: the channel is made of atomics only, and stays mapped for as long as the client is there.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    pub fn channel(&self) -> &Channel {
        // SAFETY: mapped until the client is dropped, with at least a channel's size.
        unsafe { self.channel.as_ref() }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the client's own mapping, and nobody holds the client any more.
        unsafe { libc::munmap(self.channel.as_ptr().cast(), channel::SIZE) };
    }
}

/// Serves a client until it is gone.
pub fn serve(gpus: &Arc<Gpus>, folder: &Path, name: &str) -> io::Result<()> {
    let paths = files(name).map(|file| folder.join(file));
    let [request, reply, channel] = &paths;
    let mut requests = File::open(request)?;
    let pid = holder(request)?;
    let mut replies = OpenOptions::new().write(true).open(reply)?;
    let client = Arc::new(Client {
        pid,
        gpus: Arc::clone(gpus),
        space: Space::default(),
        gone: AtomicBool::new(false),
        channel: map(channel)?,
    });
    let mut streams = HashMap::new();
    while let Ok(request) = message::receive::<Request>(&mut requests) {
        let is_answered = request.is_answered();
        let reply = answer(&client, &mut streams, request).unwrap_or_else(Reply::Failed);
        if !is_answered {
            if let Reply::Failed(code) = reply {
                client.channel().fail(code);
            }
        } else if message::send(&mut replies, &reply).is_err() {
            break;
        }
    }
    client.gone.store(true, Ordering::Release);
    // Streams end when nobody gives them anything more.
    drop(streams);
    for path in &paths {
        // The folder may have gone already.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// The process that has a named pipe open, beside this one. A client's own word would not do: a process may know itself by
/// another number than the kernel's.
fn holder(pipe: &Path) -> io::Result<i32> {
    let this = std::process::id() as i32;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // It may have ended meanwhile, or be another user's.
        let Ok(open) = fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        let mut open = open.flatten().map(|entry| fs::read_link(entry.path()));
        if pid != this && open.any(|target| target.is_ok_and(|target| target == pipe)) {
            return Ok(pid);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn map(path: &Path) -> io::Result<NonNull<Channel>> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if file.metadata()?.len() < channel::SIZE as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: a fresh mapping wherever there is room.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            channel::SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    match start {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        start => NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into()),
    }
}

fn answer(
    client: &Arc<Client>,
    streams: &mut HashMap<u32, Stream>,
    request: Request,
) -> Result<Reply, u32> {
    let gpus = &client.gpus;
    match request {
        Request::Node => return Ok(Reply::Node(Box::new(gpus.node.clone()))),
        Request::Allocate {
            device,
            address,
            size,
        } => {
            if gpus.faults.strike(Fault::OutOfMemory) {
                return Err(code::OUT_OF_MEMORY);
            }
            let block = Block::new(device, gpus.account(device)?, size)?;
            client.space.place(address, Arc::new(block))?;
        }
        Request::Manage {
            device,
            address,
            size,
        } => {
            let (path, name) = gpus.managed_file();
            let block = Block::managed(device, gpus.account(device)?, size, path)?;
            client.space.place(address, Arc::new(block))?;
            return Ok(Reply::Managed(name));
        }
        Request::Free { address } => client.space.remove(address)?,
        Request::Memory { device } => {
            let account = gpus.account(device)?;
            return Ok(Reply::Memory {
                free: account.free(),
                total: account.total(),
            });
        }
        Request::Fault { fault } => return Ok(Reply::Fault(gpus.faults.strike(fault))),
        Request::Submit {
            device,
            stream,
            sequence,
            after,
            work,
        } => {
            gpus.account(device)?;
            if stream as usize >= channel::STREAMS {
                return Err(code::INVALID_VALUE);
            }
            let stream = streams
                .entry(stream)
                .or_insert_with(|| Stream::new(client, stream));
            stream.submit(Piece {
                device,
                sequence,
                after,
                work,
            });
        }
        Request::Close { stream } => drop(streams.remove(&stream)),
        Request::Lend { device } => {
            gpus.account(device)?;
            return Ok(Reply::Lent(gpus.lend(device, client.space.of(device))));
        }
        Request::Borrow { lent, address } => {
            let blocks = gpus.borrow(lent.token).ok_or(code::NOT_FOUND)?;
            client.space.borrow(address, blocks)?;
        }
        Request::Return { address } => client.space.give_back(address)?,
        Request::Leave => client.space.clear(),
    }
    Ok(Reply::Done)
}
