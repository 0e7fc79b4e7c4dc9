//! Sockets without a connection, made and bound again.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use stillpoint_image::descriptors::SocketOption;

use super::owned::owned;
use super::pairs::set;
use crate::gpu::traces;
use crate::ground::{socket_names, socket_options};

/// A socket, as the image has it.
pub struct Unconnected<'a> {
    pub family: i32,
    pub socket_type: i32,
    pub protocol: i32,
    pub listens: bool,
    pub name: &'a [u8],
    pub peer: &'a [u8],
    pub mode: Option<u32>,
    pub options: &'a [SocketOption],
}

/// Returns a name for people.
pub fn shown(name: &[u8]) -> String {
    socket_names::in_words(name).unwrap_or_else(|| "no name".to_owned())
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Unconnected<'_> {
    /// Makes the socket.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let socket = self.made(0)?;
        let (again, others): (Vec<_>, Vec<_>) = self.options.iter().partition(|option| {
            (option.level, option.name) == (libc::SOL_SOCKET, libc::SO_REUSEADDR)
        });
        for option in others {
            set_unless_so(&socket, option)?;
        }
        if self.protocol == libc::IPPROTO_TCP {
            // Connections of the earlier launch, which are over, would keep the port for a minute.
            let reuse = SocketOption {
                level: libc::SOL_SOCKET,
                name: libc::SO_REUSEADDR,
                value: 1i32.to_ne_bytes().to_vec(),
            };
            set(&socket, &reuse)?;
        } else {
            for option in &again {
                set_unless_so(&socket, option)?;
            }
        }
        if !self.name.is_empty() {
            match self.bind(&socket) {
                // Its end of an exchange: the peer answers another name as well.
                Err(error) if !self.peer.is_empty() && is_elsewhere(&error) => {}
                bound => bound?,
            }
        }
        if !self.peer.is_empty() {
            connect(&socket, self.peer)?;
        }
        if self.listens {
            // SAFETY: the call takes numbers. The kernel takes its own limit for the number of clients that wait.
            done(unsafe { libc::listen(socket.as_raw_fd(), i32::MAX) })?;
        }
        for option in again {
            set_unless_so(&socket, option)?;
        }
        Ok(socket)
    }

    fn made(&self, flags: i32) -> io::Result<OwnedFd> {
        // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
        owned(unsafe {
            libc::socket(
                self.family,
                self.socket_type | libc::SOCK_CLOEXEC | flags,
                self.protocol,
            )
        })
    }

    fn bind(&self, socket: &OwnedFd) -> io::Result<()> {
        let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        let path = socket_names::path(self.name).map(|path| Path::new(OsStr::from_bytes(path)));
        if traces::is_socket(self.name) {
            return bind(socket, &traces::socket_name(std::process::id()));
        }
        match bind(socket, self.name) {
            Err(error) if in_use(&error) => {
                // The socket's file is still there, and no process has the socket.
                let path = path.filter(|path| self.is_left(path)).ok_or(error)?;
                fs::remove_file(path)?;
                bind(socket, self.name)?;
            }
            bound => bound?,
        }
        match (path, self.mode) {
            (Some(path), Some(mode)) => fs::set_permissions(path, Permissions::from_mode(mode)),
            // The program had removed it.
            (Some(path), None) => fs::remove_file(path),
            (None, _) => Ok(()),
        }
    }

    /// Whether a file is that of a socket which no process has.
    fn is_left(&self, path: &Path) -> bool {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
        let refused = || {
            let client = self.made(libc::SOCK_NONBLOCK)?;
            connect(&client, self.name)
        };
        is_socket && refused().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

/// Whether a name belongs to another process, or to another host.
fn is_elsewhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
    )
}

/// Leaves an option alone that has its value already: a size that was set, for example, is no longer the kernel's to choose. Kernels differ in the sockets that
/// have an option, and all know what is off.
fn set_unless_so(socket: &OwnedFd, option: &SocketOption) -> io::Result<()> {
    let is_off = |value: &[u8]| {
        [0, 0xff]
            .iter()
            .any(|off| value.iter().all(|byte| byte == off))
    };
    match socket_options::value(socket.as_raw_fd(), option.level, option.name) {
        Some(value) if value == option.value => Ok(()),
        None if is_off(&option.value) => Ok(()),
        _ => set(socket, option),
    }
}

fn bind(socket: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let (at, bytes) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
    // SAFETY: the kernel reads `bytes` bytes of the name, which has as many.
    done(unsafe { libc::bind(socket.as_raw_fd(), at, bytes) })
}

fn connect(socket: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let (at, bytes) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
    // SAFETY: the kernel reads `bytes` bytes of the name, which has as many.
    done(unsafe { libc::connect(socket.as_raw_fd(), at, bytes) })
}
