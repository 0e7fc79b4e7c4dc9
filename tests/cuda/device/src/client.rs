//! One client: its connection and its resources. When the connection ends, in whatever way, so do the resources.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stillpoint_emulated_gpu_protocol::channel::{self, Channel};
use stillpoint_emulated_gpu_protocol::fault::Fault;
use stillpoint_emulated_gpu_protocol::files;
use stillpoint_emulated_gpu_protocol::message::{self, Reply, Request};

use crate::contexts::Context;
use crate::memory::{Block, Space};
use crate::node::{Gpus, code};
use crate::stream::{Piece, Stream};

/// A client's resources, which its streams share.
pub struct Client {
    pub pid: i32,
    pub gpus: Arc<Gpus>,
    pub space: Space,
    contexts: Mutex<Vec<Context>>,
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

    fn contexts(&self) -> MutexGuard<'_, Vec<Context>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the client's own mapping, and no thread holds the client any more.
        unsafe { libc::munmap(self.channel.as_ptr().cast(), channel::SIZE) };
    }
}

/// Serves a client until it is gone.
pub fn serve(gpus: &Arc<Gpus>, folder: &Path, name: &str) -> io::Result<()> {
    let paths = files(name).map(|file| folder.join(file));
    let [request, reply, channel] = &paths;
    let mut requests = File::open(request)?;
    let pid = holder(channel)?;
    let mut replies = OpenOptions::new().write(true).open(reply)?;
    let client = Arc::new(Client {
        pid,
        gpus: Arc::clone(gpus),
        space: Space::default(),
        contexts: Mutex::default(),
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
    // Streams end when no more work can come.
    drop(streams);
    for path in &paths {
        // The folder may have gone already.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Finds the process that has mapped a file, besides this one. The client's own id would not do: a process may know itself by another number than the
/// kernel's. An open file would not do either: a process that shares the client's descriptors but not its memory (`CLONE_FILES`) has it open as well.
fn holder(channel: &Path) -> io::Result<i32> {
    let this = std::process::id() as i32;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // The process may have ended meanwhile, or belong to another user.
        let Ok(maps) = fs::read(entry.path().join("maps")) else {
            continue;
        };
        if pid != this && has_mapped(&maps, channel) {
            return Ok(pid);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Tells whether a process has a file among its mappings, as the kernel lists them.
fn has_mapped(maps: &[u8], file: &Path) -> bool {
    let file = file.as_os_str().as_bytes();
    maps.split(|byte| *byte == b'\n').any(|line| {
        let before = line.strip_suffix(file);
        before.is_some_and(|before| before.ends_with(b" "))
    })
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
        Request::Context { device } => {
            let account = gpus.account(device)?;
            let of = (client.pid, device);
            let made = gpus.contexts.make(of, account, gpus.node.context)?;
            client.contexts().push(made);
        }
        Request::EndContext { device } => {
            let mut contexts = client.contexts();
            let place = contexts.iter().position(|one| one.device == device);
            contexts.swap_remove(place.ok_or(code::INVALID_VALUE)?);
        }
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
        Request::Share { address } => {
            let block = client.space.at(address).ok_or(code::INVALID_VALUE)?;
            return Ok(Reply::Lent(gpus.share(&block)));
        }
        Request::Open { token, address } => {
            let block = gpus.shared(token).ok_or(code::NOT_FOUND)?;
            client.space.place(address, block)?;
        }
        Request::Return { address } => client.space.give_back(address)?,
        Request::Leave => {
            client.space.clear();
            client.contexts().clear();
        }
    }
    Ok(Reply::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_what_it_has_mapped() {
        let maps = b"\
1000000000-1000010000 rw-s 00000000 00:06 71        /dev/nvidia-emulated/nvidia-7-1.channel
7f0000000000-7f0000001000 r-xp 00000000 00:05 8     /usr/lib/libcuda.so.1
";
        let channel = |name: &str| Path::new("/dev/nvidia-emulated").join(name);
        assert!(has_mapped(maps, &channel("nvidia-7-1.channel")));
        for other in ["7-1.channel", "nvidia-7-2.channel", "nvidia-7-1"] {
            assert!(!has_mapped(maps, &channel(other)), "{other}");
        }
    }

    /// A process that shares descriptors, or has inherited them, is not the client.
    #[test]
    fn whoever_only_has_the_file_open_is_none() {
        let path = std::env::temp_dir().join(format!("emulated-gpu-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(File::open(&path).unwrap())
            .spawn()
            .unwrap();
        let found = holder(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(file);
        fs::remove_file(&path).unwrap();
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
