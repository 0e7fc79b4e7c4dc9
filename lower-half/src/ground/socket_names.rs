//! Names of sockets: bytes of a `struct sockaddr`, as the kernel gives and takes them. Pure, but for [`of`].

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::RawFd;

/// The offset of a Unix socket's name.
const UNIX_NAME: usize = std::mem::offset_of!(libc::sockaddr_un, sun_path);

/// `getsockname` or `getpeername`.
pub type Ask =
    unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

/// Returns the name that a call tells; empty if it tells none.
pub fn of(number: RawFd, ask: Ask) -> Vec<u8> {
    let mut name = vec![0; size_of::<libc::sockaddr_storage>()];
    let mut bytes = name.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to the name, which has as many.
    let result = unsafe { ask(number, name.as_mut_ptr().cast(), &raw mut bytes) };
    name.truncate(match result {
        0 => bytes as usize,
        _ => 0,
    });
    name
}

fn family(name: &[u8]) -> Option<i32> {
    let family = name.first_chunk()?;
    Some(u16::from_ne_bytes(*family).into())
}

/// Returns the name of a Unix socket, without the zeros behind a path. Other sockets have none.
fn of_unix(name: &[u8]) -> Option<&[u8]> {
    let name = name
        .get(UNIX_NAME..)
        .filter(|_| family(name) == Some(libc::AF_UNIX))?;
    match name {
        [] => None,
        [0, ..] => Some(name),
        path => path.split(|byte| *byte == 0).next(),
    }
}

/// Returns the abstract name of a Unix socket: its first byte is 0.
pub fn abstract_name(name: &[u8]) -> Option<&[u8]> {
    of_unix(name).filter(|name| name.first() == Some(&0))
}

/// Returns the path of a Unix socket.
pub fn path(name: &[u8]) -> Option<&[u8]> {
    of_unix(name).filter(|name| name.first() != Some(&0))
}

/// Whether the kernel has given an abstract name by itself: five digits.
pub fn is_the_kernels(name: &[u8]) -> bool {
    matches!(abstract_name(name), Some([0, digits @ ..]) if digits.len() == 5 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a name of an internet socket has a port.
pub fn has_a_port(name: &[u8]) -> bool {
    internet(name).is_some_and(|address| address.port() != 0)
}

fn internet(name: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
    match family(name)? {
        libc::AF_INET => {
            let ip: [u8; 4] = *name.get(4..)?.first_chunk()?;
            Some(SocketAddrV4::new(ip.into(), port).into())
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = *name.get(8..)?.first_chunk()?;
            Some(SocketAddrV6::new(ip.into(), port, 0, 0).into())
        }
        _ => None,
    }
}

/// Returns a name for people, unless there is none.
pub fn in_words(name: &[u8]) -> Option<String> {
    if let Some(address) = internet(name) {
        return Some(address.to_string());
    }
    Some(match of_unix(name)? {
        [0, rest @ ..] => format!("@{}", String::from_utf8_lossy(rest)),
        path => String::from_utf8_lossy(path).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn names_are_told_as_the_kernel_gives_them() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("name");
        let listener = UnixListener::bind(&place).unwrap();
        let name = of(listener.as_raw_fd(), libc::getsockname);
        assert_eq!(in_words(&name).as_deref(), place.to_str());
        assert_eq!(path(&name), Some(place.as_os_str().as_encoded_bytes()));
        assert!(abstract_name(&name).is_none() && !has_a_port(&name));

        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = of(tcp.as_raw_fd(), libc::getsockname);
        assert_eq!(in_words(&name), Some(tcp.local_addr().unwrap().to_string()));
        assert!(has_a_port(&name) && path(&name).is_none());
        let udp = UdpSocket::bind("[::1]:0").unwrap();
        let name = of(udp.as_raw_fd(), libc::getsockname);
        assert_eq!(in_words(&name), Some(udp.local_addr().unwrap().to_string()));
        assert!(of(udp.as_raw_fd(), libc::getpeername).is_empty());

        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(in_words(&of(one.as_raw_fd(), libc::getsockname)), None);
        assert!(is_the_kernels(b"\x01\0\x0000a1f") && !is_the_kernels(b"\x01\0\x00name"));
    }
}
