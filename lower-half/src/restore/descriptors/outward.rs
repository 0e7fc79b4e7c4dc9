//! Sockets that led out of the job, made anew without their peers (`--sockets reset`).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::{SocketOption, SocketRole};

use super::owned::owned;
use super::pairs::set;

/// A socket, as the image has it.
pub struct Outward<'a> {
    pub family: i32,
    pub socket_type: i32,
    pub protocol: i32,
    pub local: Option<&'a [u8]>,
    pub role: &'a SocketRole,
    pub options: &'a [SocketOption],
}

impl Outward<'_> {
    /// Makes it anew.
    pub fn open(&self) -> io::Result<OwnedFd> {
        match self.role {
            SocketRole::Lost { told } => {
                let lost = lost(self.family)?;
                self.set_options(&lost)?;
                if *told {
                    error_of(&lost)?;
                }
                Ok(lost)
            }
            SocketRole::Listening { backlog } => {
                let socket = self.bound()?;
                // SAFETY: listen takes numbers and touches no memory; the socket is open (a reference).
                done(unsafe { libc::listen(socket.as_raw_fd(), *backlog) })?;
                Ok(socket)
            }
            SocketRole::Open { peer } => {
                let socket = self.bound()?;
                if let Some(peer) = peer {
                    match connect(&socket, peer) {
                        // As if the peer had gone: the program's next message finds out.
                        Err(error) if self.family == libc::AF_UNIX => gone(&error)?,
                        connected => connected?,
                    }
                }
                Ok(socket)
            }
        }
    }

    /// A socket with its options at its own address.
    fn bound(&self) -> io::Result<OwnedFd> {
        let socket = socket(self.family, self.socket_type, self.protocol)?;
        self.set_options(&socket)?;
        let Some(local) = self.local else {
            return Ok(socket);
        };
        if self.family == libc::AF_UNIX {
            remove_what_nobody_serves(local, self.socket_type)?;
        }
        let listens = matches!(self.role, SocketRole::Listening { .. });
        if listens && self.family != libc::AF_UNIX {
            // Connections of the earlier launch that are not quite over do not keep the address.
            set_number(&socket, libc::SO_REUSEADDR, 1)?;
        }
        // SAFETY: the kernel reads as many bytes as the address has.
        done(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                local.as_ptr().cast(),
                local.len() as libc::socklen_t,
            )
        })?;
        // Listening sockets without the option again do not permit another one at their address.
        self.set_options(&socket)?;
        Ok(socket)
    }

    fn set_options(&self, socket: &OwnedFd) -> io::Result<()> {
        self.options.iter().try_for_each(|option| {
            match set(socket, option) {
                // Such a value is what the kernel gives to a socket that has none.
                Err(_) if option.value.iter().all(|byte| *byte == 0) => Ok(()),
                // Larger buffers than this host allows make a connection slower, not wrong.
                Err(_) if matches!(option.name, libc::SO_SNDBUF | libc::SO_RCVBUF) => Ok(()),
                set => set,
            }
        })
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn socket(family: i32, socket_type: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
    owned(unsafe { libc::socket(family, socket_type | libc::SOCK_CLOEXEC, protocol) })
}

fn set_number(socket: &OwnedFd, name: i32, value: i32) -> io::Result<()> {
    set(
        socket,
        &SocketOption {
            level: libc::SOL_SOCKET,
            name,
            value: value.to_ne_bytes().to_vec(),
        },
    )
}

fn connect(socket: &OwnedFd, peer: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the address has.
    done(unsafe {
        libc::connect(
            socket.as_raw_fd(),
            peer.as_ptr().cast(),
            peer.len() as libc::socklen_t,
        )
    })
}

/// Whether an error says only that the peer is not there.
fn gone(error: &io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ECONNREFUSED | libc::ENOTDIR | libc::EACCES) => Ok(()),
        other => Err(io::Error::from_raw_os_error(other.unwrap_or(libc::EIO))),
    }
}

/// Takes the error that waits at a socket.
fn error_of(socket: &OwnedFd) -> io::Result<i32> {
    let (mut error, mut bytes) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel writes one number, as its length says.
    done(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut bytes,
        )
    })?;
    Ok(error)
}

/// A TCP connection that its peer has reset: it is made on this host's loopback, and closed at once.
fn lost(family: i32) -> io::Result<OwnedFd> {
    let listener = socket(family, libc::SOCK_STREAM, 0)?;
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut bytes = match family {
        libc::AF_INET6 => {
            let any = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: std::net::Ipv6Addr::LOCALHOST.octets(),
                },
                sin6_scope_id: 0,
            };
            // SAFETY: the storage is larger than the address and as aligned.
            unsafe { address.as_mut_ptr().cast::<libc::sockaddr_in6>().write(any) };
            size_of::<libc::sockaddr_in6>() as libc::socklen_t
        }
        _ => {
            let any = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: 0,
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(std::net::Ipv4Addr::LOCALHOST.octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: as above.
            unsafe { address.as_mut_ptr().cast::<libc::sockaddr_in>().write(any) };
            size_of::<libc::sockaddr_in>() as libc::socklen_t
        }
    };
    let ours = socket(family, libc::SOCK_STREAM, 0)?;
    // SAFETY: the address is one of `bytes` bytes; the kernel reads it, and then writes the socket's own there, which has as many.
    unsafe {
        let place = address.as_mut_ptr().cast::<libc::sockaddr>();
        done(libc::bind(listener.as_raw_fd(), place, bytes))?;
        done(libc::listen(listener.as_raw_fd(), 1))?;
        done(libc::getsockname(
            listener.as_raw_fd(),
            place,
            &raw mut bytes,
        ))?;
        done(libc::connect(ours.as_raw_fd(), place, bytes))?;
    }
    // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
    let theirs = owned(unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            libc::SOCK_CLOEXEC,
        )
    })?;
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let value = [at_once.l_onoff, at_once.l_linger].map(i32::to_ne_bytes);
    set(
        &theirs,
        &SocketOption {
            level: libc::SOL_SOCKET,
            name: libc::SO_LINGER,
            value: value.concat(),
        },
    )?;
    drop(theirs);
    let mut poll = libc::pollfd {
        fd: ours.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: poll reads and writes one structure, which lives on this stack.
    match unsafe { libc::poll(&raw mut poll, 1, 5000) } {
        1 if poll.revents & libc::POLLERR != 0 => Ok(ours),
        _ => Err(io::Error::from(io::ErrorKind::TimedOut)),
    }
}

/// Removes the name of a Unix socket that nobody serves any more: the earlier launch has left it.
fn remove_what_nobody_serves(address: &[u8], socket_type: i32) -> io::Result<()> {
    let at = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    let path = address.get(at..).unwrap_or_default();
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    if path.is_empty() {
        // An abstract name goes with its socket.
        return Ok(());
    }
    let probe = socket(libc::AF_UNIX, socket_type, 0)?;
    let refused =
        connect(&probe, address).is_err_and(|it| it.raw_os_error() == Some(libc::ECONNREFUSED));
    if refused {
        let path = std::ffi::CString::new(path)?;
        // SAFETY: the path ends in NUL, and the kernel only reads it.
        unsafe { libc::unlink(path.as_ptr()) };
    }
    Ok(())
}
