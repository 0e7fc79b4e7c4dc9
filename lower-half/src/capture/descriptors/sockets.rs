//! Sockets: pairs can be carried; others are described in words, because the other side of a connection cannot be taken along.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::RawFd;

use stillpoint_image::descriptors::DescriptorKind;
use stillpoint_refusals::{Refusal, refusal};

use super::pairs::OtherEnd;
use super::{All, OpenDescriptor, outward, pairs};
use crate::capture::contents::Contents;

const ADVICE: &str = "close it before a checkpoint";
const MAY_BE_LOST: &str = ", or let a restart lose it (--sockets reset)";

/// Describes a socket, or says why it cannot be carried.
pub fn describe(
    open: &OpenDescriptor,
    all: &All<'_>,
    contents: &mut Contents,
) -> Result<DescriptorKind, Refusal> {
    let number = open.number;
    let (domain, kind) = (
        option(number, libc::SO_DOMAIN),
        option(number, libc::SO_TYPE),
    );
    let what = match (domain, kind) {
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => {
            let lost = outward::may_be_lost().then(|| outward::connection(number, domain));
            match lost.flatten() {
                Some(lost) => return Ok(lost),
                None => "TCP",
            }
        }
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => "UDP",
        (libc::AF_UNIX, _) => {
            let streams = kind != libc::SOCK_DGRAM;
            if let Some(name) = abstract_listener(number) {
                return pairs::listener(open, all, kind, name);
            }
            match pairs::other_end(open, all) {
                OtherEnd::Elsewhere if streams && outward::may_be_lost() => {
                    return Ok(pairs::lost(open, kind));
                }
                // Its name matters no more.
                OtherEnd::Closed if streams && outward::may_be_lost() => {}
                other => {
                    if let Some(reason) = named(number) {
                        let hint = match other {
                            OtherEnd::Elsewhere if streams => MAY_BE_LOST,
                            _ => "",
                        };
                        return Err(refusal!(OpenSocket, "{reason}: {ADVICE}{hint}"));
                    }
                }
            }
            return pairs::describe(open, all, kind, contents);
        }
        (libc::AF_NETLINK, _) => "netlink",
        _ => "network",
    };
    if option(number, libc::SO_ACCEPTCONN) == 1 {
        let at = address(number, libc::getsockname).map_or(String::new(), |at| format!(" at {at}"));
        return Err(refusal!(
            OpenSocket,
            "a listening {what} socket{at}: {ADVICE}"
        ));
    }
    Err(match address(number, libc::getpeername) {
        Some(peer) => {
            let hint = match what {
                "TCP" => MAY_BE_LOST,
                _ => "",
            };
            refusal!(OpenSocket, "a {what} connection to {peer}: {ADVICE}{hint}")
        }
        None => refusal!(OpenSocket, "a {what} socket: {ADVICE}"),
    })
}

/// Returns the name of a Unix socket that listens at an abstract name: bytes, the first is 0.
fn abstract_listener(number: RawFd) -> Option<Vec<u8>> {
    let name = unix_address(number, libc::getsockname)?;
    (option(number, libc::SO_ACCEPTCONN) == 1 && name.first() == Some(&0)).then_some(name)
}

/// Returns words for a Unix socket that has a name, or is connected to one.
fn named(number: RawFd) -> Option<String> {
    if option(number, libc::SO_ACCEPTCONN) == 1 {
        let name = unix_name(number, libc::getsockname).unwrap_or_default();
        return Some(format!("a listening Unix socket at '{name}'"));
    }
    if let Some(peer) = unix_name(number, libc::getpeername) {
        return Some(format!("a Unix connection to '{peer}'"));
    }
    let name = unix_name(number, libc::getsockname)?;
    Some(format!("a Unix socket named '{name}'"))
}

/// Returns the name of one end of a Unix socket, except names that the kernel gives by itself: five digits in no directory.
fn unix_name(number: RawFd, call: AddressCall) -> Option<String> {
    let name = unix_address(number, call)?;
    match name.as_slice() {
        [] => None,
        [0, digits @ ..] if digits.len() == 5 && digits.iter().all(u8::is_ascii_hexdigit) => None,
        [0, rest @ ..] => Some(format!("@{}", String::from_utf8_lossy(rest))),
        name => Some(
            String::from_utf8_lossy(name)
                .trim_end_matches('\0')
                .to_owned(),
        ),
    }
}

/// Returns the bytes of one end's name.
fn unix_address(number: RawFd, call: AddressCall) -> Option<Vec<u8>> {
    let mut storage = std::mem::MaybeUninit::<libc::sockaddr_un>::zeroed();
    let mut bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes`; zeros are a valid address structure.
    let storage = unsafe {
        if call(number, storage.as_mut_ptr().cast(), &raw mut bytes) != 0 {
            return None;
        }
        storage.assume_init()
    };
    let at = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    let name = storage.sun_path.iter();
    let name = name.take((bytes as usize).saturating_sub(at));
    Some(name.map(|byte| byte.cast_unsigned()).collect())
}

pub(super) fn option(number: RawFd, name: libc::c_int) -> libc::c_int {
    let mut value: libc::c_int = -1;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes one int, as its length says.
    unsafe {
        libc::getsockopt(
            number,
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &raw mut bytes,
        )
    };
    value
}

type AddressCall =
    unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

/// Returns an internet address in words.
fn address(number: RawFd, call: AddressCall) -> Option<String> {
    let mut storage = std::mem::MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut bytes = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes`; zeros are a valid address structure.
    let storage = unsafe {
        if call(number, storage.as_mut_ptr().cast(), &raw mut bytes) != 0 {
            return None;
        }
        storage.assume_init()
    };
    let address = match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage holds a `sockaddr_in`, which is smaller and not more aligned.
            let v4 = unsafe { *(&raw const storage).cast::<libc::sockaddr_in>() };
            let ip = u32::from_be(v4.sin_addr.s_addr).into();
            SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that the storage holds a `sockaddr_in6`, which is smaller and not more aligned.
            let v6 = unsafe { *(&raw const storage).cast::<libc::sockaddr_in6>() };
            SocketAddr::V6(SocketAddrV6::new(
                v6.sin6_addr.s6_addr.into(),
                u16::from_be(v6.sin6_port),
                0,
                0,
            ))
        }
        _ => return None,
    };
    Some(address.to_string())
}
