//! TCP connections that led out of the process, made anew without their peers (`--sockets reset`).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::SocketOption;

use super::owned::owned;
use super::pairs::set;

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn socket(family: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
    owned(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })
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

/// Makes a TCP connection that its peer has reset: on this host's loopback, and closed at once. `told`: the error has been taken.
pub fn open(family: i32, told: bool, options: &[SocketOption]) -> io::Result<OwnedFd> {
    let lost = match lost(family) {
        // A host without IPv6: a connection that is over is as much over in the other family.
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => lost(libc::AF_INET)?,
        lost => lost?,
    };
    for option in options {
        // The connection is over: what this host does not offer has no effect any more.
        let _ = set(&lost, option);
    }
    if told {
        error_of(&lost)?;
    }
    Ok(lost)
}

fn lost(family: i32) -> io::Result<OwnedFd> {
    let listener = socket(family)?;
    let ours = socket(family)?;
    // A loopback that a packet filter closes keeps nobody waiting.
    let patience = libc::timeval {
        tv_sec: 5,
        tv_usec: 0,
    };
    for end in [&listener, &ours] {
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            set_time(end, name, patience)?;
        }
    }
    if family == libc::AF_INET6 {
        // A host without IPv6 has the loopback of IPv4 in it.
        for end in [&listener, &ours] {
            set(
                end,
                &SocketOption {
                    level: libc::IPPROTO_IPV6,
                    name: libc::IPV6_V6ONLY,
                    value: 0i32.to_ne_bytes().to_vec(),
                },
            )?;
        }
    }
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut bytes = match family {
        libc::AF_INET6 => {
            let any = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(),
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
    // A byte that came tells this connection from one that was never made.
    let mut byte = [1u8];
    // SAFETY: the kernel reads one byte and writes one, each on this stack.
    unsafe {
        let (sent, came) = (theirs.as_raw_fd(), ours.as_raw_fd());
        if libc::send(sent, byte.as_ptr().cast(), 1, libc::MSG_NOSIGNAL) != 1
            || libc::recv(came, byte.as_mut_ptr().cast(), 1, 0) != 1
        {
            return Err(io::Error::last_os_error());
        }
    }
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
        1 if poll.revents & libc::POLLERR != 0 => {}
        _ => return Err(io::Error::from(io::ErrorKind::TimedOut)),
    }
    let without = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        set_time(&ours, name, without)?;
    }
    Ok(ours)
}

fn set_time(socket: &OwnedFd, name: i32, time: libc::timeval) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the structure has.
    done(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const time).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        )
    })
}
